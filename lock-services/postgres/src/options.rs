use std::time::Duration;

use lock_core::{Error, backend::support::connecting::invalid};

/// Settings of a lock service on PostgreSQL.
#[derive(Clone, Debug)]
#[must_use]
pub struct PostgresOptions {
    pub(super) response_timeout: Duration,
    pub(super) connections: u32,
    pub(super) listen: Option<String>,
}

impl PostgresOptions {
    /// How long to wait for a connection and an answer. Defaults to 2 s; from 10 ms to 10 s.
    ///
    /// Longer than the database takes to fail over only delays what is asked again anyway.
    pub const fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// The most connections, besides the one that listens. Defaults to 8. Waiters need none.
    pub const fn connections(mut self, most: u32) -> Self {
        self.connections = most;
        self
    }

    /// The URL of the database itself, for the connection that listens, if the other one goes
    /// through a pooler that gives connections away between transactions.
    pub fn listen(mut self, url: impl Into<String>) -> Self {
        self.listen = Some(url.into());
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let allowed = Duration::from_millis(10)..=Duration::from_secs(10);
        if !allowed.contains(&self.response_timeout) {
            return Err(invalid("a response timeout is 10 ms to 10 s"));
        }
        if self.connections == 0 {
            return Err(invalid("at least one connection is needed"));
        }
        Ok(())
    }
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            response_timeout: Duration::from_secs(2),
            connections: 8,
            listen: None,
        }
    }
}
