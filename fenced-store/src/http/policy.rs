use std::sync::Arc;

use http::{HeaderMap, request::Parts};

use super::{
    Disclose, FENCING_TOKEN, Fenced, Rejection, Scope, TokenVerifier, disclose::ToClient,
    fenced::NoToken, methods::Methods,
};

/// What one layer asks of a request.
#[derive(Debug)]
pub(super) struct Policy<V> {
    pub(super) verifier: Arc<V>,
    pub(super) required: bool,
    pub(super) methods: Methods,
    pub(super) scope: Scope,
    pub(super) disclose: Disclose,
}

impl<V: TokenVerifier> Policy<V> {
    /// Lets the request pass, with its token in the extensions, or says why not. `None` means that
    /// the layer does not look at this method, and so leaves the response alone.
    pub(super) fn check(&self, request: &mut Parts) -> Result<Option<ToClient>, Rejection> {
        keep_out_of_logs(&mut request.headers);
        if !self.methods.include(&request.method) {
            return Ok(None);
        }
        let Some(fenced) = Fenced::from_headers(&request.headers, &*self.verifier)? else {
            if self.required {
                return Err(Rejection::Missing);
            }
            request.extensions.insert(NoToken);
            return Ok(Some(self.disclose.to_client(false)));
        };
        if !self.scope.admits(request, fenced.resource()) {
            return Err(Rejection::WrongResource {
                token_resource: fenced.resource().clone(),
                request_resource: self.scope.named_in(request),
            });
        }
        let to_client = self.disclose.to_client(fenced.is_signed());
        request.extensions.insert(fenced);
        Ok(Some(to_client))
    }
}

/// Not derived, which would ask for `V: Clone`.
impl<V> Clone for Policy<V> {
    fn clone(&self) -> Self {
        Self {
            verifier: Arc::clone(&self.verifier),
            required: self.required,
            methods: self.methods.clone(),
            scope: self.scope.clone(),
            disclose: self.disclose,
        }
    }
}

/// Whatever prints the headers further in does not print the holder.
pub(super) fn keep_out_of_logs(headers: &mut HeaderMap) {
    // `HeaderMap::get_mut` would reach the first value only.
    for (name, value) in headers.iter_mut() {
        if name == FENCING_TOKEN {
            value.set_sensitive(true);
        }
    }
}
