use std::{
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::under_way::{OneMore, UnderWay};

/// For how long a client may take nothing of an answer that is being sent to it.
const STALLED_TIME_MAX: Duration = Duration::from_secs(15);

/// For how long an answer may be on its way to a client that takes a little of it now and then.
/// The script of `/docs`, of 1.5 MB, arrives in time at 25 kB/s.
const LEAVING_TIME_MAX: Duration = Duration::from_secs(60);

/// A connection that fails when its client has stopped reading or reads too slowly, and that counts
/// as a request under way until what was written has left.
///
/// A timeout of the body, as `tower_http` has it, would not do: hyper takes the whole body of an
/// answer at once, and waits for the client afterwards.
pub(super) struct Unread<S> {
    stream: S,
    under_way: UnderWay,
    /// While something is written that has not left. A stream of events leaves with each of them.
    leaving: Option<Leaving>,
}

struct Leaving {
    /// Since the client did not take all at once.
    slow: Timer,
    /// Since the client has taken anything.
    stalled: Timer,
    _under_way: OneMore,
}

impl<S> Unread<S> {
    pub(super) const fn new(stream: S, under_way: UnderWay) -> Self {
        Self {
            stream,
            under_way,
            leaving: None,
        }
    }

    /// Fails if the client has taken nothing for too long, or takes too long for all of it.
    fn in_time(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let under_way = &self.under_way;
        let leaving = self.leaving.get_or_insert_with(|| Leaving {
            slow: Timer::new(LEAVING_TIME_MAX),
            stalled: Timer::new(STALLED_TIME_MAX),
            _under_way: under_way.one_more(),
        });
        if written.is_ready() {
            leaving.stalled.stop();
            return written;
        }
        // Both, so that both wake this task.
        let over = [&mut leaving.slow, &mut leaving.stalled].map(|timer| timer.poll_over(cx));
        match over.iter().any(Poll::is_ready) {
            true => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            false => Poll::Pending,
        }
    }
}

/// Begins when it is first asked. Nearly every answer leaves at once and needs none.
struct Timer {
    time: Duration,
    running: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    const fn new(time: Duration) -> Self {
        Self {
            time,
            running: None,
        }
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let begin = || Box::pin(sleep(self.time));
        self.running.get_or_insert_with(begin).as_mut().poll(cx)
    }

    fn stop(&mut self) {
        self.running = None;
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unread<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.in_time(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.in_time(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper calls this when it has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.leaving = None;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unread<S> {
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
