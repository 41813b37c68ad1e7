use std::time::Duration;

use lock_core::{AttemptRef, FencingToken, Holder, Moment, ResourceName, support::Endings};

/// How long a tombstone stays. Late requests come from this process.
const TOMBSTONE_TTL: Duration = Duration::from_secs(10);

/// How many there are at most. Hand-offs inside a process are fast.
const TOMBSTONES_MAX: usize = 16_384;

/// Remembers the acquisitions and attempts that ended in this process.
#[derive(Debug)]
pub(super) struct Tombstones(Endings<End>);

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its holder released it; it had this token.
    Released(FencingToken),
    /// The attempt was cancelled, or the lease was lost.
    Over,
    /// It was cancelled, and had never been seen here: only the service can end it.
    CancelledUnseen,
    /// It left the queue, and may come again.
    Left,
}

impl Tombstones {
    pub(super) fn acquisition(
        &mut self,
        resource: &ResourceName,
        holder: Holder,
        end: End,
        now: Moment,
    ) {
        self.0.acquisition(resource, holder, end, now);
    }

    /// An attempt that is over stays over, whatever its caller does later.
    pub(super) fn attempt(&mut self, attempt: &AttemptRef, end: End, now: Moment) {
        if self.0.how_attempt(attempt) != Some(End::Over) {
            self.0.attempt(attempt, end, now);
        }
    }

    /// How the acquisition ended, if it ended here and is still remembered.
    pub(super) fn how(&self, resource: &ResourceName, holder: Holder) -> Option<End> {
        self.0.how(resource, holder)
    }

    /// Whether the attempt has been seen to end here. An earlier cancel does not count: it may not
    /// have reached the service.
    pub(super) fn knows(&self, attempt: &AttemptRef) -> bool {
        let attempt_ended = self.0.how_attempt(attempt);
        self.how(&attempt.resource, attempt.holder).is_some()
            || matches!(attempt_ended, Some(end) if end != End::CancelledUnseen)
    }

    /// Whether the acquisition, or this attempt of it, has ended for good.
    pub(super) fn forbids(&self, attempt: &AttemptRef) -> bool {
        let attempt_ended = self.0.how_attempt(attempt);
        self.how(&attempt.resource, attempt.holder).is_some()
            || matches!(attempt_ended, Some(End::Over | End::CancelledUnseen))
    }
}

impl Default for Tombstones {
    fn default() -> Self {
        Self(Endings::new(TOMBSTONE_TTL, TOMBSTONES_MAX))
    }
}
