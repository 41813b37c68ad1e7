use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use pin_project_lite::pin_project;

use super::{CallError, Credential};

pin_project! {
    /// The future of [`FencedWrite`](super::FencedWrite).
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
        credential: Credential,
    }
}

impl<F> ResponseFuture<F> {
    pub(super) const fn new(inner: F, credential: Credential) -> Self {
        Self { inner, credential }
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<B>, CallError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.inner.poll(cx)).map_err(CallError::Inner)?;
        let believed = this
            .credential
            .believe(response.status(), response.headers());
        Poll::Ready(believed.map(|()| response).map_err(CallError::NotFenced))
    }
}
