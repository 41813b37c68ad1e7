use super::Table;
use crate::{
    AttemptId, AttemptRef, Error, FencingToken, Forced, Moment, Released, ResourceName, Sequencer,
};

/// The ways in which a lease ends.
impl Table {
    pub(in crate::memory) fn release(&mut self, lease: &Sequencer, now: Moment) -> Released {
        let mut visit = self.visit(lease.resource(), lease.holder(), now);
        let released = visit.release(lease.token(), true);
        self.keep(lease.resource(), visit);
        released
    }

    pub(in crate::memory) fn release_hold(
        &mut self,
        lease: &Sequencer,
        attempt: AttemptId,
        now: Moment,
    ) -> Released {
        let attempt = AttemptRef {
            resource: lease.resource().clone(),
            holder: lease.holder(),
            id: attempt,
        };
        let mut visit = self.visit_attempt(&attempt, now);
        let released = visit.release_hold(lease.token());
        self.keep(lease.resource(), visit);
        released
    }

    pub(in crate::memory) fn cancel(&mut self, attempt: &AttemptRef, now: Moment) {
        let mut visit = self.visit_attempt(attempt, now);
        visit.cancel();
        self.keep(&attempt.resource, visit);
    }

    pub(in crate::memory) fn force_release(
        &mut self,
        resource: &ResourceName,
        token: FencingToken,
        now: Moment,
    ) -> Result<Forced, Error> {
        self.serve(resource, now);
        let held = self.resources.get(resource);
        let Some(held) = held.and_then(|entry| entry.held.as_ref()) else {
            return Ok(Forced::NotHeld);
        };
        let mut visit = self.visit(resource, held.holder, now);
        let forced = visit.force_release(token, &mut self.tokens);
        self.keep(resource, visit);
        forced
    }
}
