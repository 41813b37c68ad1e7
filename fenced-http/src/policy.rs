use std::sync::Arc;

use http::{HeaderMap, request::Parts};

use crate::{
    FENCING_TOKEN, Fenced, Rejection, Scope, TokenVerifier, fenced::NoToken, methods::Methods,
};

/// The conditions of one layer for a request.
#[derive(Debug)]
pub(crate) struct Policy<V> {
    pub(crate) verifier: Arc<V>,
    pub(crate) required: bool,
    pub(crate) methods: Methods,
    pub(crate) scope: Scope,
}

impl<V: TokenVerifier> Policy<V> {
    /// Lets the request pass, with its token in the extensions, or refuses it. Returns whether the
    /// layer checks this method. If not, the layer does not change the response.
    pub(crate) fn check(&self, request: &mut Parts) -> Result<bool, Rejection> {
        keep_out_of_logs(&mut request.headers);
        if !self.methods.include(&request.method) {
            return Ok(false);
        }
        let Some(fenced) = Fenced::from_headers(&request.headers, &*self.verifier)? else {
            if self.required {
                return Err(Rejection::Missing);
            }
            request.extensions.insert(NoToken);
            return Ok(true);
        };
        if !self.scope.admits(request, fenced.resource()) {
            return Err(Rejection::WrongResource {
                token_resource: fenced.resource().clone(),
                request_resource: self.scope.named_in(request),
            });
        }
        request.extensions.insert(fenced);
        Ok(true)
    }
}

/// This is not derived, because a derived one would require `V: Clone`.
impl<V> Clone for Policy<V> {
    fn clone(&self) -> Self {
        Self {
            verifier: Arc::clone(&self.verifier),
            required: self.required,
            methods: self.methods.clone(),
            scope: self.scope.clone(),
        }
    }
}

/// Marks the header as sensitive, so that inner layers do not print the holder.
fn keep_out_of_logs(headers: &mut HeaderMap) {
    // `HeaderMap::get_mut` would reach the first value only.
    for (name, value) in headers.iter_mut() {
        if name == FENCING_TOKEN {
            value.set_sensitive(true);
        }
    }
}
