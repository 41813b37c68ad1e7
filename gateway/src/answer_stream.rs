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

/// The longest time for an answer to leave, for a client that reads slowly. It is enough for the
/// script of `/docs`, 1.5 MB, at 25 kB/s.
const LEAVING_TIME_MAX: Duration = Duration::from_secs(60);

/// A connection that fails when its client stops reading or reads too slowly. It counts as a
/// request under way until all written bytes have left. A timeout of the body would not help,
/// because hyper takes the whole body at once.
pub(crate) struct AnswerStream<S> {
    stream: S,
    requests: UnderWay,
    /// The longest time for which the client may read nothing.
    stalled_max: Duration,
    /// `None` when everything has left. In a stream of events, that is so after each event.
    leaving: Option<Leaving>,
}

struct Leaving {
    /// The time by which everything has to have left; `None` until the client leaves something
    /// unread.
    end: Option<Instant>,
    /// The limit of the present pause of the client. Few answers need it.
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
