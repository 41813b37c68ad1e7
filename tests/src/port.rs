//! Ports that servers can listen on.

use std::{
    collections::HashSet,
    io,
    net::TcpListener,
    sync::{LazyLock, Mutex, PoisonError},
};

/// Below the range from which Linux and macOS take the ports of outgoing connections (32768 and
/// 49152). Otherwise a client that keeps calling a killed server may be given that very port for
/// its own end, connects to itself, and keeps the server from coming back.
const RANGE: std::ops::Range<u16> = 15_000..32_000;

const ATTEMPTS: u32 = 100;

/// The ports that were already given out in this process, so that no two servers get the same one.
static GIVEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);

/// A loopback port that nobody listens on, and never the same twice. Another process may still take
/// it before the server does.
///
/// # Errors
/// If all ports that were tried are taken.
pub fn free() -> io::Result<u16> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let port = rand::random_range(RANGE);
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        if given.contains(&port) {
            continue;
        }
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => {
                given.insert(port);
                return Ok(port);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::other("no free port")))
}
