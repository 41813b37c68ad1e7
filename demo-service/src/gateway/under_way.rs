use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Error,
    body::{Body, Bytes, HttpBody},
    response::Response,
};
use hyper::body::{Frame, SizeHint};
use tokio::{sync::watch, time::timeout};

/// How much is under way: requests of a connection that are not answered to the end, or requests
/// that are being handled and writes that have begun.
///
/// Cloning is cheap and shares the count.
#[derive(Clone, Debug)]
pub(super) struct UnderWay(watch::Sender<usize>);

impl UnderWay {
    pub(super) fn none() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Counts a request, or a part of one, until the result is dropped.
    pub(super) fn one_more(&self) -> OneMore {
        self.0.send_modify(|requests| *requests += 1);
        OneMore(self.0.clone())
    }

    /// Whether there is nothing at the moment.
    pub(super) fn is_none(&self) -> bool {
        *self.0.borrow() == 0
    }

    /// Resolves when there is nothing under way.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn over(&self) {
        // No error: `self` has a sender.
        drop(self.0.subscribe().wait_for(|requests| *requests == 0).await);
    }

    /// Resolves when there has been nothing under way for this time.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn quiet(&self, time: Duration) {
        let mut under_way = self.0.subscribe();
        loop {
            // No error: `self` has a sender.
            drop(under_way.wait_for(|requests| *requests == 0).await);
            let next = under_way.wait_for(|requests| *requests > 0);
            if timeout(time, next).await.is_err() {
                return;
            }
        }
    }
}

/// See [`UnderWay::one_more`].
#[derive(Debug)]
pub(super) struct OneMore(watch::Sender<usize>);

impl OneMore {
    /// Counts until the body has been produced, or is given up.
    pub(super) fn until_end_of(self, response: Response) -> Response {
        response.map(|body| {
            let _until_dropped = self;
            Body::new(Counted {
                body,
                _until_dropped,
            })
        })
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        self.0.send_modify(|requests| *requests -= 1);
    }
}

struct Counted {
    body: Body,
    _until_dropped: OneMore,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
