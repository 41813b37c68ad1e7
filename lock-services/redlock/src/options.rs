use std::time::Duration;

use lock_core::{
    Error, InitialToken,
    backend::support::{
        PREFIX,
        connecting::{check_prefix, invalid},
    },
};

/// Settings of a Redlock lock service.
#[derive(Clone, Debug)]
#[must_use]
pub struct RedlockOptions {
    pub(super) prefix: String,
    pub(super) initial_token: InitialToken,
    pub(super) response_timeout: Duration,
}

impl RedlockOptions {
    /// What all keys begin with. Defaults to `palisade`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Where counters begin when the nodes are provisioned, and how far a floor may lie above
    /// them: as the nodes were provisioned. Defaults to the clock of whoever provisions.
    pub const fn initial_token(mut self, initial: InitialToken) -> Self {
        self.initial_token = initial;
        self
    }

    /// How long to wait for the nodes when not enough of them have answered. Defaults to 250 ms; at
    /// least 5 ms, at most 10 s.
    ///
    /// When enough have answered, the others are waited for as long again and 20 ms; a node that
    /// did not answer then is not waited for during the next second. A release waits for no more
    /// than enough.
    pub const fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let allowed = Duration::from_millis(5)..=Duration::from_secs(10);
        if !allowed.contains(&self.response_timeout) {
            return Err(invalid("a response timeout is 5 ms to 10 s"));
        }
        check_prefix(&self.prefix)
    }
}

impl Default for RedlockOptions {
    fn default() -> Self {
        Self {
            prefix: PREFIX.to_owned(),
            initial_token: InitialToken::default(),
            response_timeout: Duration::from_millis(250),
        }
    }
}
