use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::Response;
use pin_project_lite::pin_project;

use crate::{Rejection, accepted, caches};

pin_project! {
    /// The future of [`Fencing`](crate::Fencing): the future of the inner service, or a refusal.
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = StateProjection]
    enum State<F> {
        Inner { #[pin] future: F, is_checked: bool },
        Refused { rejection: Rejection },
    }
}

impl<F> ResponseFuture<F> {
    /// Unless `is_checked`, the response passes unchanged.
    pub(crate) const fn inner(future: F, is_checked: bool) -> Self {
        Self {
            state: State::Inner { future, is_checked },
        }
    }

    pub(crate) const fn refused(rejection: Rejection) -> Self {
        Self {
            state: State::Refused { rejection },
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: From<Bytes>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Inner { future, is_checked } => {
                let mut response = ready!(future.poll(cx))?;
                if *is_checked {
                    accepted::verify(&mut response);
                    caches::vary_by_token(response.headers_mut());
                }
                Poll::Ready(Ok(response))
            }
            StateProjection::Refused { rejection } => {
                let mut response = rejection.to_response();
                caches::vary_by_token(response.headers_mut());
                Poll::Ready(Ok(response))
            }
        }
    }
}
