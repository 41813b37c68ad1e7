use super::{Refusal, Table};
use crate::{
    AttemptId, AttemptRef, FencingToken, Forced, Moment, Released, ResourceName, Sequencer,
    support::End,
};

/// The ways in which a lease ends.
impl Table {
    pub(in crate::memory) fn release(&mut self, lease: &Sequencer, now: Moment) -> Released {
        let (resource, holder) = (lease.resource(), lease.holder());
        self.serve(resource, now);
        if self.held(resource).is_some_and(|held| held.is(lease)) {
            let end = End::Released(lease.token());
            self.tombstones.acquisition(resource, holder, end, now);
            self.hand_on(resource, now);
            return Released::Released;
        }
        let end = self.tombstones.how(resource, holder);
        end.map_or(Released::NotHolder, |end| end.answer(lease))
    }

    pub(in crate::memory) fn release_hold(
        &mut self,
        lease: &Sequencer,
        attempt: AttemptId,
        now: Moment,
    ) -> Released {
        let resource = lease.resource();
        let attempt = AttemptRef {
            resource: resource.clone(),
            holder: lease.holder(),
            id: attempt,
        };
        self.serve(resource, now);
        let held = self.held_mut(resource);
        let Some(held) = held.filter(|held| held.is(lease) && held.has_hold(attempt.id)) else {
            let end = self.tombstones.how_attempt(&attempt);
            return end.map_or(Released::NotHolder, |end| end.answer(lease));
        };
        let last = held.forget(attempt.id);
        let end = End::Released(lease.token());
        self.tombstones.attempt(&attempt, end, now);
        if last {
            self.hand_on(resource, now);
        }
        Released::Released
    }

    pub(in crate::memory) fn cancel(&mut self, attempt: &AttemptRef, now: Moment) {
        let resource = &attempt.resource;
        self.serve(resource, now);
        self.tombstones.attempt(attempt, End::Over, now);
        self.leave_queue(attempt);
        let Some(held) = self.held_mut(resource) else {
            return;
        };
        if held.holder == attempt.holder && held.forget(attempt.id) {
            self.hand_on(resource, now);
        }
    }

    pub(in crate::memory) fn force_release(
        &mut self,
        resource: &ResourceName,
        token: FencingToken,
        now: Moment,
    ) -> Result<Forced, Refusal> {
        self.serve(resource, now);
        let held = self.held(resource);
        let Some(held) = held.filter(|held| held.token == token) else {
            return Ok(Forced::NotHeld);
        };
        let holder = held.holder;
        // Drawn before the resource is handed on, so that it lies below whatever comes next.
        let revocation = self.counter.draw(None)?;
        self.tombstones
            .acquisition(resource, holder, End::Over, now);
        self.hand_on(resource, now);
        Ok(Forced::Ended { revocation })
    }

    /// Ends a lease that has run out, and hands the resource on.
    pub(in crate::memory) fn serve(&mut self, resource: &ResourceName, now: Moment) {
        let held = self.held(resource);
        let Some(held) = held.filter(|held| held.deadline <= now) else {
            return;
        };
        let holder = held.holder;
        self.tombstones
            .acquisition(resource, holder, End::Over, now);
        self.hand_on(resource, now);
    }
}
