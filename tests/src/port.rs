//! Ports that servers can listen on.

use std::{
    io,
    net::{TcpListener, UdpSocket},
    sync::{Mutex, PoisonError},
};

/// Below the range from which Linux and macOS take the ports of outgoing connections (32768 and
/// 49152). Otherwise a client that keeps calling a killed server may get the server's port for
/// its own end. Then it connects to itself, and keeps the server from coming back.
const RANGE: std::ops::Range<u16> = 15_000..32_000;

const ATTEMPTS: u32 = 100;

/// The sockets that keep other processes from getting our ports, until this process ends.
static MARKS: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// A loopback port without a listener, which no other test gets as long as this process lives.
/// Servers take the port seconds later, or again after they were killed, while other tests start
/// their servers.
///
/// # Errors
/// If all ports that were tried are taken.
pub fn free() -> io::Result<u16> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let port = rand::random_range(RANGE);
        match marked(port) {
            Ok(mark) => {
                let mut marks = MARKS.lock().unwrap_or_else(PoisonError::into_inner);
                marks.push(mark);
                return Ok(port);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("no free port")))
}

/// The mark of a port is the UDP port of the same number, which no server takes. All processes see
/// the mark, and the kernel removes it.
fn marked(port: u16) -> io::Result<UdpSocket> {
    let mark = UdpSocket::bind(("127.0.0.1", port))?;
    TcpListener::bind(("127.0.0.1", port))?;
    Ok(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: two servers of different processes on one port, of which one never serves.
    #[test]
    fn a_port_is_given_once() {
        let port = free().unwrap();
        let again = marked(port).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
    }
}
