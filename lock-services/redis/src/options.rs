use std::{ops::RangeInclusive, time::Duration};

use lock_core::{
    Error, InitialToken,
    backend::support::{
        PREFIX,
        connecting::{check_prefix, invalid},
    },
};

/// The connections watch for silence for twice as long, which systems bound.
const RESPONSE_TIMEOUTS: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(60);

/// Settings of a Redis lock service.
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisOptions {
    pub(super) prefix: String,
    pub(super) shards: u16,
    pub(super) initial_token: InitialToken,
    pub(super) response_timeout: Duration,
    pub(super) replicas: Option<Replicas>,
}

/// So many replicas have to have a grant, within so much time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replicas {
    pub(super) number: u32,
    pub(super) within: Duration,
}

impl RedisOptions {
    /// What all keys begin with. Defaults to `palisade`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Over how many token counters resources are spread. Defaults to 64.
    ///
    /// All clients of a prefix must agree; the first one fixes it.
    pub const fn shards(mut self, shards: u16) -> Self {
        self.shards = shards;
        self
    }

    /// Where a missing token counter starts. Defaults to the server's clock.
    pub const fn initial_token(mut self, initial: InitialToken) -> Self {
        self.initial_token = initial;
        self
    }

    /// How long to wait for the server to connect and to answer: 10 ms to 60 s. Defaults to 2 s.
    ///
    /// While the answer to a renewal is waited for, the renewal is not repeated: a time longer than
    /// half of a ttl may cost the lease. An answer that comes later is lost, and the outcome of
    /// what was asked is unknown.
    pub const fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Has every grant copied to so many replicas before it is returned, within so much time.
    /// Defaults to none; the time is at least 1 ms and shorter than the response timeout.
    ///
    /// A grant that they do not get in time is given back, and the acquire fails with
    /// [`TooFewReplicas`](lock_core::ErrorKind::TooFewReplicas). It costs two more round trips on a
    /// connection of its own, one grant at a time for each server.
    ///
    /// NOT guaranteed is that a failover keeps every grant: a server that never got it may be
    /// promoted. Only with the number of *all* replicas can that not happen, and then none of them
    /// may fail. Renewals and releases are not waited for.
    pub const fn replicas(mut self, number: u32, within: Duration) -> Self {
        self.replicas = Some(Replicas { number, within });
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        check_prefix(&self.prefix)?;
        let wrong = if !(1..=1024).contains(&self.shards) {
            "there are 1 to 1024 shards"
        } else if !RESPONSE_TIMEOUTS.contains(&self.response_timeout) {
            "a response timeout is 10 ms to 60 s"
        } else if self.replicas.is_some_and(|replicas| {
            replicas.number == 0
                || replicas.within < Duration::from_millis(1)
                || replicas.within >= self.response_timeout
        }) {
            "at least 1 replica is waited for, for at least 1 ms and less than the response timeout"
        } else {
            return Ok(());
        };
        Err(invalid(wrong))
    }
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            prefix: PREFIX.to_owned(),
            shards: 64,
            initial_token: InitialToken::default(),
            response_timeout: Duration::from_secs(2),
            replicas: None,
        }
    }
}
