use std::{cmp::max, time::Duration};

use lock_core::{
    FencingToken, Holder, Metadata, Sequencer,
    backend::{AttemptId, Moment},
};

/// A lease that has not been seen to end.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) holder: Holder,
    pub(super) token: FencingToken,
    /// By the clock of the service.
    pub(super) deadline: Moment,
    /// The lease has to be confirmed.
    pub(super) is_offer: bool,
    pub(super) metadata: Option<Metadata>,
    /// The attempts that got the lease: its holds. The lease ends when no hold is left.
    pub(super) holds: Vec<AttemptId>,
}

impl Held {
    pub(super) fn is(&self, lease: &Sequencer) -> bool {
        self.token == lease.token() && self.holder == lease.holder()
    }

    pub(super) fn left(&self, now: Moment) -> Duration {
        self.deadline.since(now)
    }

    /// Extends the lease, and never shortens it: other attempts may rely on the same lease.
    pub(super) fn extend(&mut self, until: Moment) {
        self.deadline = max(self.deadline, until);
    }

    /// Gives the lease to a further attempt. Returns whether the attempt did not have it yet.
    pub(super) fn join(&mut self, attempt: AttemptId) -> bool {
        let is_new = !self.holds.contains(&attempt);
        if is_new {
            self.holds.push(attempt);
        }
        is_new
    }

    /// Takes the lease from an attempt. Returns whether the attempt had it.
    pub(super) fn forget(&mut self, attempt: AttemptId) -> bool {
        let before = self.holds.len();
        self.holds.retain(|other| *other != attempt);
        self.holds.len() < before
    }
}
