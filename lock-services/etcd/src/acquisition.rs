use std::time::Duration;

use super::{
    KIND,
    failure::Failure,
    in_line::Life,
    keys::Names,
    record::{Kept, Mark},
    service::Service,
};
use lock_core::{AcquireRequest, Error, ErrorKind, Operation};

/// A request to acquire, while it is under way.
pub(super) struct Acquisition<'a> {
    pub(super) service: &'a Service,
    pub(super) request: &'a AcquireRequest,
    pub(super) names: Names,
    /// What is remembered of it, as far as we have heard.
    pub(super) mark: Option<Kept<Mark>>,
    pub(super) round: u32,
    /// How long its lease lives. `None`: we do not know.
    pub(super) kept: Option<Life>,
    /// The lease that its mark is attached to.
    pub(super) memory: i64,
}

impl Acquisition<'_> {
    /// The least token that is good enough.
    pub(super) fn least(&self) -> u64 {
        self.request.floor.map_or(0, u64::from)
    }

    /// How long its lease is, as far as we know.
    pub(super) fn length(&self) -> Duration {
        self.kept.map_or(self.request.ttl.get(), |life| life.ttl)
    }

    /// Keeps its lease alive for its full length from now on. False if it has ended.
    pub(super) async fn keep_alive(&mut self) -> Result<bool, Error> {
        let lease = self.names.lease(self.round);
        let kept = self.service.keep_alive(&[lease]).await;
        let (since, answers) = kept.map_err(|failure| self.failed(failure))?;
        let length = answers.into_iter().next().flatten();
        self.kept = length.map(|(ttl, term)| Life {
            since,
            ttl,
            said_in: Some(term),
        });
        Ok(self.kept.is_some())
    }

    pub(super) fn failed(&self, failure: Failure) -> Error {
        failure.error_on(Operation::Acquire, &self.request.attempt.resource)
    }

    /// The error for an acquisition that has ended. Its lease is given back if it has no place.
    pub(super) fn ended(&self, unused: Option<i64>) -> Error {
        if let Some(lease) = unused {
            self.service.revoker.revoke(lease);
        }
        self.error(ErrorKind::Released)
    }

    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        Error::not_applied(kind, Operation::Acquire, KIND).on(&self.request.attempt.resource)
    }

    /// Asks how long its lease lives, without keeping it alive, so that nobody gains time by asking
    /// again. False if it has ended.
    pub(super) async fn time_left(&mut self) -> Result<bool, Error> {
        let since = self.service.now();
        let left = self.service.left(self.names.lease(self.round)).await;
        let left = left.map_err(|failure| self.failed(failure))?;
        self.kept = left.map(|(ttl, term)| Life {
            since,
            ttl,
            said_in: Some(term),
        });
        Ok(self.kept.is_some())
    }
}

/// The error of an acquisition that has a place in line, or may have one. Whoever gets it has to
/// cancel, unless it says that there is no place any more.
pub(super) fn with_place(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Released | ErrorKind::QueueFull | ErrorKind::TokensExhausted => error,
        _ => error.outcome_unknown(),
    }
}
