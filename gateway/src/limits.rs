use std::time::Duration;

/// The limits of one gateway.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// How long a request may take to arrive, and then how long the service of it may take.
    pub request_time: Duration,
    /// How many requests may wait for a lease at the same time.
    pub waiting: usize,
    /// How many connections may be open at the same time.
    pub connections: usize,
    /// How long the head of a request may take to arrive, how long a connection may be idle, and
    /// how long a client may read nothing of an answer that is sent to it.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_time: Duration::from_secs(15),
            waiting: 500,
            connections: 4000,
            silence: Duration::from_secs(15),
        }
    }
}
