use std::{
    io::{self, ErrorKind},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use crate::under_way::{OneMore, UnderWay};

/// For how long an answer may leave little by little: the script of `/docs`, 1.5 MB, at 25 kB/s.
const LEAVING_TIME_MAX: Duration = Duration::from_secs(60);

/// A connection that fails when its client stops reading or reads too slowly. It is a request under
/// way until what was written has left. A timeout of the body is no use: hyper takes it at once.
pub(crate) struct AnswerStream<S> {
    stream: S,
    requests: UnderWay,
    /// For how long the client may take nothing.
    stalled_max: Duration,
    /// While something has not left. A stream of events leaves with each of them.
    leaving: Option<Leaving>,
}

struct Leaving {
    /// When all has to have left, once the client has not taken all at once.
    end: Option<Instant>,
    /// While the client takes nothing. Few answers need it.
    stalled: Option<Pin<Box<Sleep>>>,
    _under_way: OneMore,
}

impl<S> AnswerStream<S> {
    pub(crate) const fn new(stream: S, requests: UnderWay, stalled_max: Duration) -> Self {
        Self {
            stream,
            requests,
            stalled_max,
            leaving: None,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for AnswerStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Self {
            stream,
            requests,
            stalled_max,
            leaving,
        } = &mut *self;
        let leaving = leaving.get_or_insert_with(|| Leaving {
            end: None,
            stalled: None,
            _under_way: requests.one_more(),
        });
        if let Poll::Ready(written) = Pin::new(stream).poll_write(cx, bytes) {
            leaving.stalled = None;
            return Poll::Ready(written);
        }
        let now = Instant::now();
        let end = *leaving.end.get_or_insert(now + LEAVING_TIME_MAX);
        let end = std::cmp::min(end, now + *stalled_max);
        let stalled = leaving
            .stalled
            .get_or_insert_with(|| Box::pin(sleep_until(end)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.leaving = None; // hyper flushes when it has nothing left to write
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for AnswerStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

#[cfg(test)]
mod tests;
