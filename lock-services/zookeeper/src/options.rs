use std::time::Duration;

use lock_core::{
    Error, InitialToken,
    backend::support::{
        PREFIX,
        connecting::{check_prefix, invalid},
    },
};

/// Settings of a ZooKeeper lock service.
#[derive(Clone, Debug)]
#[must_use]
pub struct ZooKeeperOptions {
    pub(super) prefix: String,
    pub(super) initial_token: InitialToken,
    pub(super) session_timeout: Duration,
    pub(super) response_timeout: Duration,
}

impl ZooKeeperOptions {
    /// The directory that everything is kept in, below the chroot. Defaults to `palisade`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Where the floor of a resource that has none starts. Defaults to the clock, which here means
    /// at zero: tokens are numbers of transactions, which rise by themselves.
    pub const fn initial_token(mut self, initial: InitialToken) -> Self {
        self.initial_token = initial;
        self
    }

    /// How long the servers keep our nodes when they hear nothing from us. Defaults to 30 s, and at
    /// least 100 ms; the servers may make it shorter or longer. `session_ms` of a URL overrides it.
    ///
    /// The longest lease is two thirds of it. Waiters of ours act by the ttl of a lease, so this is
    /// only how long other libraries wait for a client that died.
    pub const fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// How long to wait for an answer. Defaults to 5 s.
    ///
    /// An answer that comes later is lost, and the outcome of what was asked is unknown.
    pub const fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        check_prefix(&self.prefix)?;
        let wrong = if [".", ".."].contains(&self.prefix.as_str()) {
            "a prefix is the name of a directory, not . or .."
        } else if self.session_timeout < Duration::from_millis(100)
            || self.session_timeout > Duration::from_secs(24 * 60 * 60)
        {
            "a session is 100 ms to 24 h long"
        } else if self.response_timeout < Duration::from_millis(10) {
            "a response timeout is at least 10 ms"
        } else {
            return Ok(());
        };
        Err(invalid(wrong))
    }
}

impl Default for ZooKeeperOptions {
    fn default() -> Self {
        Self {
            prefix: PREFIX.to_owned(),
            initial_token: InitialToken::default(),
            session_timeout: Duration::from_secs(30),
            response_timeout: Duration::from_secs(5),
        }
    }
}
