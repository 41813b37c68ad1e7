use std::{slice, sync::Arc, time::Duration};

use super::{
    Acquire, Inner, LockManager,
    cleanup::{CleanUp, OnDrop},
    granted::Granted,
    settings::Identity,
};
use crate::{
    AcquireRequest, Attempt, AttemptRef, Error, ErrorKind, Grant, Holder, Moment, Outcome,
    ResourceName, Upkeep, Wait, support::Patience,
};

/// How much longer than its wait an acquire stays for the answer that it holds nothing: longer than
/// it takes around the world and back.
const GRACE: Duration = Duration::from_millis(600);

/// After so many grants in a row that arrived after their own end, the caller gets the error that
/// its ttl is too short. The first may be a hiccup.
const LATE_GRANTS_MAX: u32 = 2;

impl Acquire {
    /// Asks the lock service until it gets an answer that is still true on arrival.
    pub(super) async fn asked(
        &self,
        resource: &ResourceName,
        wait: Wait,
    ) -> Result<Attempt<Granted>, Error> {
        let inner = &self.locks.inner;
        let mut late_grants = 0;
        loop {
            let request = self.request(resource, wait);
            let clean_up = CleanUp::Cancel {
                attempt: request.attempt.clone(),
                patience: self.sharing().patience(self.settings.ttl),
            };
            let mut pending = OnDrop::new(Arc::clone(inner), clean_up);
            match self.locks.acquire_in_time(&request).await {
                Ok(Attempt::Granted(grant)) if grant.lease.deadline() > inner.clock.now() => {
                    return Ok(Attempt::Granted(Granted {
                        pending,
                        attempt: request.attempt,
                        grant,
                    }));
                }
                // The grant arrived after its own end: dropping `pending` gives it back.
                Ok(Attempt::Granted(_)) => late_grants += 1,
                // The same, told by a later answer of the service: nobody but us knows this holder,
                // and we have released nothing.
                Err(error)
                    if error.kind() == ErrorKind::Released
                        && matches!(self.what.identity, Identity::Fresh) =>
                {
                    late_grants += 1;
                }
                Ok(Attempt::Held { retry_after }) => {
                    pending.disarm();
                    return Ok(Attempt::Held { retry_after });
                }
                Err(error) => {
                    if error.outcome() == Outcome::NotApplied {
                        pending.disarm();
                    }
                    return Err(error);
                }
            }
            if wait.is_over(inner.clock.now()) || late_grants == LATE_GRANTS_MAX {
                return Err(Error::too_late());
            }
        }
    }

    /// A request of a fresh attempt.
    fn request(&self, resource: &ResourceName, wait: Wait) -> AcquireRequest {
        let holder = match self.what.identity {
            Identity::Fresh => Holder::random(),
            Identity::Known(holder) | Identity::Owner(holder) => holder,
        };
        let attempt = AttemptRef::new(resource.clone(), holder);
        let mut request = self.settings.request(attempt, wait);
        request.floor = self.what.floor;
        let claiming = self.what.claiming.then(|| self.locks.inner.issuer.clone());
        request.claim = claiming;
        request.upkeep = match self.what.identity {
            Identity::Fresh if self.settings.is_kept_up() => Upkeep::Watchdog,
            // Another process may be told of the same lease.
            Identity::Fresh | Identity::Known(_) | Identity::Owner(_) => Upkeep::None,
        };
        request
    }
}

impl LockManager {
    /// Asks again while there is no answer, until the wait is over: a lock service may know at once
    /// that it cannot be reached, and be back a moment later.
    async fn acquire_in_time(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        if !matches!(request.wait, Wait::Until(_)) {
            return self.acquire_unless_shut_down(request).await;
        }
        let clock = &*self.inner.clock;
        let ask = |again: bool| async move {
            let answer = self.acquire_unless_shut_down(request).await?;
            Ok(answer.map(|grant| {
                let all = grant.all_answered && !again;
                grant.all_answered(all)
            }))
        };
        Patience::of(request.wait, clock.now())
            .ask(clock, ask)
            .await
    }

    /// Acquires, or gives up when the manager is shut down, because nobody would clean up
    /// afterwards.
    async fn acquire_unless_shut_down(
        &self,
        request: &AcquireRequest,
    ) -> Result<Attempt<Grant>, Error> {
        let Inner { backend, clock, .. } = &*self.inner;
        let give_up = match request.wait {
            Wait::Until(moment) => moment + GRACE,
            // The lock service says for how long it asks a server that does not answer.
            Wait::Never | Wait::Forever => Moment::NEVER,
        };
        tokio::select! {
            biased;
            () = self.inner.watchdog.closed() => {}
            answer = backend.acquire(request) => return answer,
            () = clock.sleep_until(give_up) => {
                let error = Error::unknown(ErrorKind::Unavailable);
                return Err(error.because("no answer before the wait was over"));
            }
        }
        Err(self.inner.shut_down(slice::from_ref(request)).await)
    }
}

impl Inner {
    /// Cancels attempts, because the manager was shut down while they were under way.
    pub(super) async fn shut_down(&self, requests: &[AcquireRequest]) -> Error {
        let mut error = Error::not_applied(ErrorKind::ShutDown);
        for request in requests {
            if self.backend.cancel(&request.attempt).await.is_err() {
                error = error.outcome_unknown();
            }
        }
        error
    }
}
