use super::{
    Cohort,
    lines::{Entry, Release},
    payment::Payment,
    waiting::Waiting,
};
use lock_core::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, Capabilities, Error, Fairness, FencingToken,
    Forced, Grant, Inspection, Listed, LockBackend, Released, RenewRequest, Renewed, ResourceName,
    Sequencer,
};

#[deny(clippy::missing_trait_methods)]
impl LockBackend for Cohort {
    fn kind(&self) -> &'static str {
        self.service.kind()
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.service.capabilities();
        if self.reserves && capabilities.fairness != Fairness::None {
            let passes = self.passes.get();
            capabilities.fairness = Fairness::BoundedBypass { passes };
        }
        capabilities
    }

    async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        if !self.reserves {
            return self.service.acquire(request).await;
        }
        let entry = {
            let (mut state, now) = self.state_now();
            state.lines.enter(request, now)
        };
        match entry {
            Entry::Straight => self.service.acquire(request).await,
            Entry::Answered(answer) => answer,
            Entry::InLine(place) => Waiting::new(self, place).until_answered(request.wait).await,
        }
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.renew_all(leases).await
    }

    async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        let release = {
            let (mut state, now) = self.state_now();
            state.lines.release(lease, now)
        };
        match release {
            Release::Straight => self.service.release(lease).await,
            Release::Answered(answer) => Ok(answer),
            Release::Owed(debt) => Payment::new(self, debt).make().await,
        }
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let (known, abandoned) = {
            let (mut state, now) = self.state_now();
            (state.lines.cancel(attempt, now), state.take_abandoned())
        };
        drop(abandoned);
        if !known {
            self.service.cancel(attempt).await?;
        }
        self.settle(&attempt.resource).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let inspection = self.service.inspect(resource).await?;
        Ok(self.state().lines.shown(resource, inspection))
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        self.service.release_hold(lease, attempt).await
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let at_service = self.state().lines.forcing(resource, token);
        let Some(token) = at_service else {
            return Ok(Forced::NotHeld);
        };
        let forced = self.service.force_release(resource, token).await?;
        if forced != Forced::NotHeld {
            self.state().lines.forced(resource, token, self.clock.now());
        }
        Ok(forced)
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        let mut listed = self.service.list().await?;
        let lines = &self.state().lines;
        for entry in &mut listed {
            entry.inspection = lines.shown(&entry.resource, entry.inspection.clone());
        }
        Ok(listed)
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        self.service.acquire_together(requests).await
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        self.service.part_of(resource)
    }
}
