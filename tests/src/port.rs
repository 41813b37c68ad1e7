//! Ports that servers can listen on.

use std::{io, net::TcpListener};

/// Below the range from which Linux and macOS take the ports of outgoing connections (32768 and
/// 49152). Otherwise a client that keeps calling a killed server may be given that very port for
/// its own end, connects to itself, and keeps the server from coming back.
const RANGE: std::ops::Range<u16> = 15_000..32_000;

const ATTEMPTS: u32 = 100;

/// A loopback port that nobody listens on. Somebody may still take it before the server does.
///
/// # Errors
/// If all that were tried are taken.
pub fn free() -> io::Result<u16> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let port = rand::random_range(RANGE);
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("no free port")))
}
