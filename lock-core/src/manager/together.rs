use std::sync::Arc;

use tracing::{Instrument, debug_span};

use super::{
    LeaseGuard, LeaseGuards,
    cleanup::{CleanUp, OnDrop, Sharing},
    observed::Observed,
    several::AcquireSeveral,
};
use crate::{
    AcquireRequest, Attempt, AttemptRef, Error, ErrorKind, Extension, Grant, Holder, Operation,
    Outcome, ResourceName, Upkeep, Wait,
};

impl AcquireSeveral<'_> {
    /// Looks again and again until all of them are free.
    pub(super) async fn together(&self, named: &[ResourceName]) -> Result<LeaseGuards, Error> {
        self.locks
            .require(Extension::Together, "step for several resources")?;
        self.settings.check(self.locks)?;
        let inner = &*self.locks.inner;
        let span = debug_span!(
            "acquire_together",
            resources = named.len(),
            backend = inner.backend.kind(),
        );
        let wait = self.settings.until(&*inner.clock);
        let observed = Observed::begin(inner, wait != Wait::Never, span.clone());
        let acquired = async {
            let look = || self.look(named);
            let answer = inner.polled(self.retry, wait, look).await;
            observed.end_several(&answer);
            match answer? {
                Attempt::Granted(guards) => Ok(LeaseGuards::new(guards)),
                Attempt::Held { retry_after } => Err(self.timeout(retry_after)),
            }
        };
        acquired.instrument(span).await
    }

    /// One look, by a new holder.
    async fn look(&self, named: &[ResourceName]) -> Result<Attempt<Vec<LeaseGuard>>, Error> {
        let inner = &self.locks.inner;
        let requests = self.requests(named);
        let clean_up = |request: &AcquireRequest| {
            let attempt = request.attempt.clone();
            let ttl = self.settings.ttl;
            OnDrop::new(Arc::clone(inner), CleanUp::Cancel { attempt, ttl })
        };
        let mut pending: Vec<_> = requests.iter().map(clean_up).collect();
        let answer = self.asked(&requests).await;
        let nothing_changed = match &answer {
            Ok(Attempt::Granted(_)) => false,
            Ok(Attempt::Held { .. }) => true,
            Err(error) => error.outcome() == Outcome::NotApplied,
        };
        if nothing_changed {
            pending.iter_mut().for_each(OnDrop::disarm);
        }
        let grants = match answer? {
            Attempt::Granted(grants) => grants,
            Attempt::Held { retry_after } => return Ok(Attempt::Held { retry_after }),
        };
        let now = inner.clock.now();
        let of_use = grants.iter().all(|grant| grant.lease.deadline() > now);
        if grants.len() != requests.len() || !of_use {
            // Dropping `pending` gives them back.
            let kind = inner.backend.kind();
            return Err(
                Error::not_applied(ErrorKind::Unavailable, Operation::Acquire, kind)
                    .because("the grants arrived after the leases had ended; ask for a longer ttl"),
            );
        }
        let mut guards = Vec::new();
        for ((request, grant), pending) in requests.iter().zip(grants).zip(&mut pending) {
            let terms = self.settings.terms(Sharing::Alone);
            guards.push(LeaseGuard::new(
                Arc::clone(inner),
                &request.attempt,
                grant,
                terms,
            ));
            pending.disarm();
        }
        Ok(Attempt::Granted(guards))
    }

    /// One request for each resource, all of the same attempt of the same holder.
    fn requests(&self, named: &[ResourceName]) -> Vec<AcquireRequest> {
        let holder = Holder::random();
        let mut same = None;
        let request = |resource: &ResourceName| {
            let mut attempt = AttemptRef::new(resource.clone(), holder);
            attempt.id = *same.get_or_insert(attempt.id);
            let mut request = self.settings.request(attempt, Wait::Never);
            request.max_waiters = None;
            request.upkeep = Upkeep::None;
            request
        };
        named.iter().map(request).collect()
    }

    /// Asks, or gives up when the manager is shut down, because nobody would clean up afterwards.
    async fn asked(&self, requests: &[AcquireRequest]) -> Result<Attempt<Vec<Grant>>, Error> {
        let inner = &self.locks.inner;
        tokio::select! {
            biased;
            () = inner.watchdog.closed() => {}
            answer = inner.backend.acquire_together(requests) => return answer,
        }
        let kind = inner.backend.kind();
        let mut shut_down = Error::not_applied(ErrorKind::ShutDown, Operation::Acquire, kind);
        for request in requests {
            if inner.backend.cancel(&request.attempt).await.is_err() {
                shut_down = shut_down.outcome_unknown();
            }
        }
        Err(shut_down)
    }
}
