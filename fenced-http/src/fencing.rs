use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service;

use crate::{ResponseFuture, TokenVerifier, counted, policy::Policy};

/// The service that [`FencingLayer`](crate::FencingLayer) puts around another service.
///
/// The error type is that of the inner service: a refusal is a response.
#[derive(Debug)]
pub struct Fencing<S, V> {
    inner: S,
    policy: Arc<Policy<V>>,
}

impl<S, V> Fencing<S, V> {
    pub(crate) const fn new(inner: S, policy: Arc<Policy<V>>) -> Self {
        Self { inner, policy }
    }

    /// The inner service.
    #[must_use]
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Gives the inner service back.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.inner
    }
}

/// This is not derived, because a derived one would require `V: Clone`.
impl<S: Clone, V> Clone for Fencing<S, V> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            policy: Arc::clone(&self.policy),
        }
    }
}

impl<S, V, ReqBody, ResBody> Service<Request<ReqBody>> for Fencing<S, V>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    V: TokenVerifier,
    ResBody: From<Bytes>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        match self.policy.check(&mut parts) {
            // This calls the instance on which `poll_ready` was called, because a clone might not
            // be ready.
            Ok(is_checked) => {
                let request = Request::from_parts(parts, body);
                ResponseFuture::inner(self.inner.call(request), is_checked)
            }
            Err(rejection) => {
                counted::refusal(rejection.problem_type());
                tracing::debug!(%rejection, method = %parts.method, "request refused");
                ResponseFuture::refused(rejection)
            }
        }
    }
}
