//! An answer that leaves a part of its request unread says `Connection: close`, because hyper
//! closes that connection. Without the header a client would send its next request on a closed
//! connection.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use axum::{body::Body, response::Response};
use futures_util::FutureExt;
use hyper::{
    Request,
    body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint},
    header::{CONNECTION, HeaderValue},
};
use tokio::sync::oneshot::{self, Receiver, Sender, error::TryRecvError};

/// Lends the body of a request to the handlers. A handler gives the body back by dropping it.
pub(crate) fn lend(request: Request<Incoming>) -> (Request<Body>, Loan) {
    if request.body().is_end_stream() {
        return (request.map(Body::new), Loan(None));
    }
    let (back, returned) = oneshot::channel();
    let request = request.map(|body| {
        let lent = Some((body, back));
        Body::new(Lent(lent))
    });
    (request, Loan(Some(returned)))
}

/// A body that a handler may give back before its end; `None` if the request has no body.
pub(crate) struct Loan(Option<Receiver<Incoming>>);

impl Loan {
    /// Call it when the answer is there. It reads the bytes that have arrived, and drops them. A
    /// small body arrives together with its head. In that case the connection can be used again.
    pub(crate) fn settle(self, answer: &mut Response) {
        let Some(mut returned) = self.0 else { return };
        let is_read = match returned.try_recv() {
            Ok(rest) => has_arrived(rest),
            Err(TryRecvError::Closed) => true,
            // A handler still reads, and may stop before the end.
            Err(TryRecvError::Empty) => false,
        };
        if !is_read {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
    }
}

fn has_arrived(mut rest: Incoming) -> bool {
    loop {
        let next = poll_fn(|cx| Pin::new(&mut rest).poll_frame(cx));
        match next.now_or_never() {
            Some(Some(Ok(_))) => {}
            Some(None) => return true,
            Some(Some(Err(_))) | None => return false,
        }
    }
}

/// A body with the channel on which it is given back; `None` after the body was read to its end.
struct Lent(Option<(Incoming, Sender<Incoming>)>);

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some((body, _)) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        if frame.is_none() || body.is_end_stream() {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|(body, _)| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.0.as_ref().map(|(body, _)| body.size_hint());
        left.unwrap_or_else(|| SizeHint::with_exact(0))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some((rest, back)) = self.0.take() {
            // If the connection is gone, there is no answer either.
            drop(back.send(rest));
        }
    }
}
