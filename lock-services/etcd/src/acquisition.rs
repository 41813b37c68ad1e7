use std::time::Duration;

use super::{
    keys::Names,
    queued::Life,
    record::{Kept, Tombstone},
    service::Service,
};
use std::sync::Arc;

use lock_core::{Error, ErrorKind, backend::AcquireRequest};

/// A request to acquire, while it is under way.
pub(super) struct Acquisition<'a> {
    pub(super) service: &'a Arc<Service>,
    pub(super) request: &'a AcquireRequest,
    pub(super) names: Names,
    /// What is remembered of it, as far as we have heard.
    pub(super) tombstone: Option<Kept<Tombstone>>,
    /// The lease that it has taken.
    pub(super) lease: Option<i64>,
    /// The lease of its entry, which another attempt may have taken.
    pub(super) on: i64,
    /// How long that lives. `None`: we do not know.
    pub(super) kept: Option<Life>,
    /// The entry was made by the only request for it that was ever sent.
    pub(super) sent_once: bool,
}

impl Acquisition<'_> {
    /// The least token that is good enough.
    pub(super) fn least(&self) -> u64 {
        self.request.floor.map_or(0, u64::from)
    }

    /// How long its lease is, as far as we know.
    pub(super) fn length(&self) -> Duration {
        self.kept.map_or(self.request.ttl.get(), |life| life.length)
    }

    /// Keeps its lease alive for its full length from now on. False if it has ended.
    pub(super) async fn keep_alive(&mut self) -> Result<bool, Error> {
        let lives = self.service.keep_alive(&[self.on]).await?;
        self.kept = lives.into_iter().next().flatten();
        Ok(self.kept.is_some())
    }

    /// Asks how long its lease lives, without keeping it alive, so that nobody gains time by asking
    /// again. False if it has ended.
    pub(super) async fn time_left(&mut self) -> Result<bool, Error> {
        self.kept = self.service.left(self.on).await?;
        Ok(self.kept.is_some())
    }

    /// The lease that it has taken is not used again, because somebody else may have it revoked.
    pub(super) fn lose_lease(&mut self) {
        if let Some(lease) = self.lease.take() {
            let service = self.service;
            service.leases.lose(&self.names, lease, service.now());
        }
        self.kept = None;
    }
}

/// The error of an acquisition that has a queue entry, or may have one. Whoever gets it has to
/// cancel, unless it says that there is no entry any more.
pub(super) fn may_be_queued(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Released | ErrorKind::QueueFull | ErrorKind::TokensExhausted => error,
        _ => error.outcome_unknown(),
    }
}
