use std::{
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use super::under_way::{OneMore, UnderWay};

/// For how long a client may take nothing of an answer that is being sent to it.
const STALLED_TIME_MAX: Duration = Duration::from_secs(15);

/// A connection that fails when its client has stopped reading, and that counts as a request under
/// way until what was written has left.
///
/// A timeout of the body, as `tower_http` has it, would not do: hyper takes the whole body of an
/// answer at once, and waits for the client afterwards.
pub(super) struct Unread {
    stream: TcpStream,
    under_way: UnderWay,
    /// While something is written that has not left.
    leaving: Option<OneMore>,
    /// While the client takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Unread {
    pub(super) const fn new(stream: TcpStream, under_way: UnderWay) -> Self {
        Self {
            stream,
            under_way,
            leaving: None,
            stalled: None,
        }
    }

    /// Fails if the client has taken nothing for too long.
    fn in_time(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.leaving
            .get_or_insert_with(|| self.under_way.one_more());
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = || Box::pin(sleep(STALLED_TIME_MAX));
        ready!(self.stalled.get_or_insert_with(stalled).as_mut().poll(cx));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Unread {
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

impl AsyncRead for Unread {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}
