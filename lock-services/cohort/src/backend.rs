use super::{
    Cohort,
    lines::{Entry, Release},
    payment::Payment,
    waiting::Waiting,
};
use lock_core::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, BoxFuture, Capabilities, Error, Fairness,
    FencingToken, Forced, Grant, Inspection, Listed, LockBackend, Released, RenewRequest, Renewed,
    ResourceName, Sequencer,
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

    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Attempt<Grant>, Error>> {
        Box::pin(async move {
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
                Entry::InLine(place) => {
                    Waiting::new(self, place).until_answered(request.wait).await
                }
            }
        })
    }

    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>> {
        Box::pin(self.renew_all(leases))
    }

    fn release<'a>(&'a self, lease: &'a Sequencer) -> BoxFuture<'a, Result<Released, Error>> {
        Box::pin(async move {
            let release = {
                let (mut state, now) = self.state_now();
                state.lines.release(lease, now)
            };
            match release {
                Release::Straight => self.service.release(lease).await,
                Release::Answered(answer) => Ok(answer),
                Release::Owed(debt) => Payment::new(self, debt).make().await,
            }
        })
    }

    fn cancel<'a>(&'a self, attempt: &'a AttemptRef) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let (known, abandoned) = {
                let (mut state, now) = self.state_now();
                (state.lines.cancel(attempt, now), state.take_abandoned())
            };
            drop(abandoned);
            if !known {
                self.service.cancel(attempt).await?;
            }
            self.settle(&attempt.resource).await
        })
    }

    fn inspect<'a>(
        &'a self,
        resource: &'a ResourceName,
    ) -> BoxFuture<'a, Result<Inspection, Error>> {
        Box::pin(async move {
            let inspection = self.service.inspect(resource).await?;
            Ok(self.state().lines.shown(resource, inspection))
        })
    }

    fn release_hold<'a>(
        &'a self,
        lease: &'a Sequencer,
        attempt: AttemptId,
    ) -> BoxFuture<'a, Result<Released, Error>> {
        self.service.release_hold(lease, attempt)
    }

    fn force_release<'a>(
        &'a self,
        resource: &'a ResourceName,
        token: FencingToken,
    ) -> BoxFuture<'a, Result<Forced, Error>> {
        Box::pin(async move {
            let at_service = self.state().lines.forcing(resource, token);
            let Some(token) = at_service else {
                return Ok(Forced::NotHeld);
            };
            let forced = self.service.force_release(resource, token).await?;
            if forced != Forced::NotHeld {
                self.state().lines.forced(resource, token, self.clock.now());
            }
            Ok(forced)
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Listed>, Error>> {
        Box::pin(async move {
            let mut listed = self.service.list().await?;
            let lines = &self.state().lines;
            for entry in &mut listed {
                entry.inspection = lines.shown(&entry.resource, entry.inspection.clone());
            }
            Ok(listed)
        })
    }

    fn acquire_together<'a>(
        &'a self,
        requests: &'a [AcquireRequest],
    ) -> BoxFuture<'a, Result<Attempt<Vec<Grant>>, Error>> {
        self.service.acquire_together(requests)
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        self.service.part_of(resource)
    }
}
