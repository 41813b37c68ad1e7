use std::{io, net::TcpStream as StdTcpStream, os::fd::AsFd, sync::Arc};

use tokio::{io::Interest, net::TcpStream};

/// Shows whether the client of a request is still there.
///
/// hyper also notices that a client is gone, and drops the handler. It does not notice that while
/// bytes of the client are unread: a second request behind the first one hides that the client is
/// gone.
#[derive(Clone, Debug)]
pub(crate) struct Caller(Arc<TcpStream>);

impl Caller {
    /// Looks at a connection through a descriptor of its own. Reads nothing.
    ///
    /// # Errors
    /// If there are no more descriptors.
    pub(crate) fn of(connection: &TcpStream) -> io::Result<Self> {
        let descriptor = StdTcpStream::from(connection.as_fd().try_clone_to_owned()?);
        let descriptor = TcpStream::from_std(descriptor)?;
        Ok(Self(Arc::new(descriptor)))
    }

    /// Resolves when the client has closed the connection, or only its sending half. hyper treats
    /// both alike, too.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn gone(&self) {
        loop {
            match self.0.ready(Interest::READABLE).await {
                Ok(seen) if seen.is_read_closed() => return,
                Ok(_) => self.wait_for_more(),
                // The runtime is being shut down.
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// The bytes that have arrived belong to hyper. The next `ready` reports only later bytes.
    fn wait_for_more(&self) {
        let nothing_left = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        let _would_block = self.0.try_io(Interest::READABLE, nothing_left).is_err();
    }
}
