use std::time::Duration;

use crate::{AttemptRef, FencingToken, Holder, Moment, ResourceName, support::Endings};

/// Remembers what has ended, so that a late request of it gains nothing. However many have ended,
/// each is remembered for its time.
#[derive(Debug)]
pub struct Ended(Endings<End>);

/// How an acquisition, or an attempt of it, ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third end")]
pub enum End {
    /// Its holder gave back what it had of the lease with this token.
    Released(FencingToken),
    /// Its lease ran out or was ended by force, or the attempt was cancelled.
    Lost,
}

impl Ended {
    /// Remembers for this long.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self(Endings::new(ttl, usize::MAX))
    }

    /// Remembers the end of an acquisition.
    pub fn acquisition(&mut self, resource: &ResourceName, holder: Holder, end: End, now: Moment) {
        self.0.acquisition(resource, holder, end, now);
    }

    /// An attempt that was released stays released, whatever is said of it later.
    pub fn attempt(&mut self, attempt: &AttemptRef, end: End, now: Moment) {
        let end = match self.how_attempt(attempt) {
            Some(released @ End::Released(_)) => released,
            Some(End::Lost) | None => end,
        };
        self.0.attempt(attempt, end, now);
    }

    /// How the acquisition ended, if it is still remembered.
    #[must_use]
    pub fn how(&self, resource: &ResourceName, holder: Holder) -> Option<End> {
        self.0.how(resource, holder)
    }

    /// How the attempt ended, if it is still remembered.
    #[must_use]
    pub fn how_attempt(&self, attempt: &AttemptRef) -> Option<End> {
        self.0.how_attempt(attempt)
    }

    /// Whether the acquisition, or this attempt of it, has ended.
    #[must_use]
    pub fn contains(&self, attempt: &AttemptRef) -> bool {
        let acquisition = self.how(&attempt.resource, attempt.holder);
        acquisition.or_else(|| self.how_attempt(attempt)).is_some()
    }
}
