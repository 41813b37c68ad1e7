use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::{CallError, Credential, ResponseFuture};

/// The client that [`FencedWriteLayer`](super::FencedWriteLayer) makes of another.
///
/// A response that is not a 2xx passes as it is: [`Refusal`](super::Refusal) reads it.
///
/// # Cancel safety
/// Not cancel safe: if a call is dropped, the write may be made all the same. Read before you
/// repeat it.
#[derive(Clone, Debug)]
pub struct FencedWrite<S> {
    inner: S,
    credential: Credential,
}

impl<S> FencedWrite<S> {
    pub(super) const fn new(inner: S, credential: Credential) -> Self {
        Self { inner, credential }
    }

    /// The inner client. What is sent with it has no credential.
    #[must_use]
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner client. What is sent with it has no credential.
    #[must_use]
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Gives the inner client back.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for FencedWrite<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
{
    type Response = S::Response;
    type Error = CallError<S::Error>;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(CallError::Inner)
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        self.credential.put_on(request.headers_mut());
        // Called on the very instance that `poll_ready` saw: a clone might not be ready.
        ResponseFuture::new(self.inner.call(request), self.credential.clone())
    }
}
