//! The state of one attempt to acquire.

use std::{sync::Arc, time::Duration};

use super::{
    keys::Names,
    queued::{Life, Queued},
    record::{Kept, Tombstone},
    service::Service,
};
use lock_core::{Error, ErrorKind, backend::AcquireRequest};

/// One attempt to acquire, between its requests.
pub(super) struct Attempt<'a> {
    pub(super) service: &'a Arc<Service>,
    pub(super) request: &'a AcquireRequest,
    pub(super) names: Names,
    /// The memory of the acquisition, as the last answer showed it.
    pub(super) tombstone: Option<Kept<Tombstone>>,
    /// The lease that this attempt has taken.
    pub(super) lease: Option<i64>,
    /// The lease of the entry. Another attempt may have taken it.
    pub(super) on: i64,
    /// The life of the lease `on`, if it is known.
    pub(super) kept: Option<Life>,
    /// The queue entry of the acquisition.
    pub(super) place: Option<Queued>,
    /// The key of the entry before this one, and a revision at which that entry was there.
    pub(super) before: Option<(Vec<u8>, i64)>,
    /// The attempt could not watch for changes, or could not keep its lease alive.
    pub(super) is_deaf: bool,
    /// The entry was behind another entry.
    pub(super) waited: bool,
    /// The error with which the attempt has to leave the queue.
    pub(super) refusal: Option<ErrorKind>,
    /// Whether a copy of the request that makes the entry may arrive later.
    pub(super) copied: bool,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(service: &'a Arc<Service>, request: &'a AcquireRequest) -> Self {
        let attempt = &request.attempt;
        Self {
            service,
            request,
            names: service.keys.names(&attempt.resource, attempt.holder),
            tombstone: None,
            lease: None,
            on: 0,
            kept: None,
            place: None,
            before: None,
            is_deaf: false,
            waited: false,
            refusal: None,
            copied: false,
        }
    }

    /// The least token that the attempt accepts.
    pub(super) fn least(&self) -> u64 {
        self.request.floor.map_or(0, u64::from)
    }

    /// The length of the lease, as far as it is known.
    pub(super) fn length(&self) -> Duration {
        self.kept.map_or(self.request.ttl.get(), |life| life.length)
    }

    /// Keeps the lease alive for its full length from now on. Returns false if the lease has ended.
    pub(super) async fn keep_alive(&mut self) -> Result<bool, Error> {
        self.kept = self.service.keep_one_alive(self.on).await?;
        Ok(self.kept.is_some())
    }

    /// Asks how long the lease lives, without keeping it alive, because a repeated request must not
    /// extend the lease. Returns false if the lease has ended.
    pub(super) async fn time_left(&mut self) -> Result<bool, Error> {
        self.kept = self.service.left(self.on).await?;
        Ok(self.kept.is_some())
    }

    /// Ends the attempt.
    pub(super) async fn leave(&mut self) -> Result<(), Error> {
        self.before = None;
        self.service.cancel(&self.request.attempt).await?;
        // Another attempt may rely on the lease.
        (self.place, self.lease, self.copied) = (None, None, false);
        Ok(())
    }

    /// Gives up the lease that the attempt has taken. It is not used again, because another client
    /// may revoke it.
    pub(super) fn lose_lease(&mut self) {
        if let Some(lease) = self.lease.take() {
            let service = self.service;
            service.leases.lose(&self.names, lease, service.now());
        }
        self.kept = None;
    }
}

/// An attempt that may have an entry is cancelled, which ends its leases. Any other attempt gives
/// its lease back here.
impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.place.is_none() && !self.copied {
            self.lose_lease();
        }
    }
}

/// The error of an attempt that has an entry, or may have one. Its caller has to cancel, unless
/// the error says that there is no entry any more.
pub(super) fn may_be_queued(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Released | ErrorKind::QueueFull | ErrorKind::TokensExhausted => error,
        _ => error.outcome_unknown(),
    }
}
