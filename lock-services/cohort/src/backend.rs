use super::{Cohort, queues::Entry, waiting::Waiting};
use lock_core::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, Capabilities, Error, Fairness, FencingToken,
    Forced, Grant, Inspection, Listed, LockBackend, Released, RenewRequest, Renewed, ResourceName,
    Sequencer,
};

#[deny(clippy::missing_trait_methods)]
impl LockBackend for Cohort {
    fn kind(&self) -> &'static str {
        self.shared.service.kind()
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.shared.service.capabilities();
        if self.shared.reserves && capabilities.fairness != Fairness::None {
            let passes = self.shared.passes.get();
            capabilities.fairness = Fairness::BoundedBypass { passes };
        }
        capabilities
    }

    async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        let shared = &self.shared;
        if !shared.reserves {
            return shared.service.acquire(request).await;
        }
        let entry = {
            let (mut queues, now) = shared.queues_now();
            queues.enter(request, now)
        };
        match entry {
            Entry::Direct => shared.service.acquire(request).await,
            Entry::Answered(answer) => answer,
            Entry::Queued(mut place) => {
                let undriven = place.undriven.take();
                let waiting = Waiting::new(shared, place);
                if let Some(wake) = undriven {
                    shared.drive(&request.attempt.resource, wake);
                }
                waiting.until_answered(request.wait).await
            }
        }
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.shared.renew_all(leases).await
    }

    async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        let direct = || self.shared.service.release(lease);
        self.shared.release(lease, direct).await
    }

    async fn release_answered(&self, lease: &Sequencer, again: bool) -> Result<Released, Error> {
        let direct = || self.shared.service.release_answered(lease, again);
        self.shared.release(lease, direct).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let is_known = {
            let (mut queues, now) = self.shared.queues_now();
            queues.cancel(attempt, now)
        };
        if !is_known {
            self.shared.service.cancel(attempt).await?;
        }
        let resource = &attempt.resource;
        self.shared.settle(resource).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let inspection = self.shared.service.inspect(resource).await?;
        Ok(self.shared.queues().shown(resource, inspection))
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        self.shared.service.release_hold(lease, attempt).await
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let at_service = self.shared.queues().forcing(resource, token);
        let Some(token) = at_service else {
            return Ok(Forced::NotHeld);
        };
        let forced = self.shared.service.force_release(resource, token).await?;
        if forced != Forced::NotHeld {
            let (mut queues, now) = self.shared.queues_now();
            queues.forced(resource, token, now);
        }
        Ok(forced)
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        let mut listed = self.shared.service.list().await?;
        let queues = self.shared.queues();
        for entry in &mut listed {
            entry.inspection = queues.shown(&entry.resource, entry.inspection.clone());
        }
        Ok(listed)
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        self.shared.service.acquire_together(requests).await
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        self.shared.service.part_of(resource)
    }
}
