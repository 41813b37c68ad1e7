use crate::{
    AcquireRequest, AttemptId, FencingToken, Grant, Holder, Lease, Metadata, Moment, Sequencer,
};

/// A lease that lives.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) holder: Holder,
    /// The attempts that got the lease in an answer: its holds. It ends when none is left.
    attempts: Vec<AttemptId>,
    pub(super) token: FencingToken,
    pub(super) deadline: Moment,
    pub(super) metadata: Option<Metadata>,
}

impl Held {
    pub(super) fn new(request: &AcquireRequest, token: FencingToken, now: Moment) -> Self {
        Self {
            holder: request.attempt.holder,
            attempts: vec![request.attempt.id],
            token,
            deadline: now + request.ttl.get(),
            metadata: request.metadata.clone(),
        }
    }

    pub(super) fn is(&self, sequencer: &Sequencer) -> bool {
        self.holder == sequencer.holder() && self.token == sequencer.token()
    }

    pub(super) fn grant(&self, now: Moment) -> Grant {
        let lease = Lease::counted_from(now, self.deadline.since(now));
        Grant::new(self.token, lease)
    }

    /// Gives an attempt the lease of its acquisition.
    pub(super) fn replay(&mut self, attempt: AttemptId, now: Moment) -> Grant {
        if !self.attempts.contains(&attempt) {
            self.attempts.push(attempt);
        }
        self.grant(now)
    }

    /// Never sooner than it would have ended: others may rely on the same lease.
    pub(super) fn renew(&mut self, until: Moment) {
        self.deadline = std::cmp::max(self.deadline, until);
    }

    pub(super) fn has_hold(&self, attempt: AttemptId) -> bool {
        self.attempts.contains(&attempt)
    }

    /// An attempt gives the lease up; true if no other one relies on it.
    pub(super) fn forget(&mut self, attempt: AttemptId) -> bool {
        self.attempts.retain(|other| *other != attempt);
        self.attempts.is_empty()
    }
}
