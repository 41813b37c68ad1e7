use std::time::Duration;

use lock_core::{
    Error, InitialToken,
    backend::support::{
        PREFIX,
        connecting::{check_prefix, invalid},
    },
};

/// Settings of a lock service on etcd.
#[derive(Clone, Debug)]
#[must_use]
pub struct EtcdOptions {
    pub(super) prefix: String,
    pub(super) initial_token: InitialToken,
    pub(super) response_timeout: Duration,
}

impl EtcdOptions {
    /// What all keys begin with, before a `/`. Defaults to `palisade`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Where tokens start when there is no floor yet. Defaults to the clock of the first client.
    pub const fn initial_token(mut self, initial: InitialToken) -> Self {
        self.initial_token = initial;
        self
    }

    /// How long to wait for one node to answer before the next one is asked. Defaults to 2 s; from
    /// 10 ms to 3 s, so that even a renewal comes to a second node.
    ///
    /// Nodes are asked in turn, the first one again after the last, for 10 s in all (renewals and
    /// looks 4 s). Only then is the outcome of what was asked unknown.
    pub const fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        check_prefix(&self.prefix)?;
        let allowed = Duration::from_millis(10)..=Duration::from_secs(3);
        if !allowed.contains(&self.response_timeout) {
            return Err(invalid("a response timeout is 10 ms to 3 s"));
        }
        Ok(())
    }
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            prefix: PREFIX.to_owned(),
            initial_token: InitialToken::default(),
            response_timeout: Duration::from_secs(2),
        }
    }
}
