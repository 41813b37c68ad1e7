use std::{future::pending, pin::pin, sync::Arc};

use tracing::debug;

use super::Inner;
use crate::{
    AttemptRef, Error, FencingToken, Issuer, LockService, Sequencer,
    acquisition::{Acquisition, Answer, Ended, Event, Reply, Request, Requests, Sharing, run},
};

/// One attempt, with all that is known of it. When it is dropped, the watchdog gives back what the
/// attempt may have.
///
/// It is made *before* the await that may change the lock service, so the caller may go away at any
/// await. Dropping it begins the clean-up and leaves the rest to the watchdog. The drop never
/// waits.
#[derive(Debug)]
pub(super) struct OnDrop {
    pub(super) locks: Arc<Inner>,
    pub(super) attempt: AttemptRef,
    pub(super) decisions: Acquisition,
    /// The token of the lease, once it was granted.
    token: Option<FencingToken>,
}

impl OnDrop {
    pub(super) const fn new(
        locks: Arc<Inner>,
        attempt: AttemptRef,
        decisions: Acquisition,
    ) -> Self {
        Self {
            locks,
            attempt,
            decisions,
            token: None,
        }
    }

    /// Notes the token of the grant, and returns the lease. From now on a release gives it back.
    pub(super) fn granted(&mut self, token: FencingToken) -> Sequencer {
        self.token = Some(token);
        sequencer(&self.locks.issuer, &self.attempt, token)
    }

    /// Gives back the lease, or gives up the attempt, and waits until that has happened. After an
    /// error, dropping `self` continues the clean-up.
    pub(super) async fn give_back(&mut self, how: Event) -> Result<Answer, Error> {
        let Inner {
            backend,
            runtime,
            issuer,
            ..
        } = &*self.locks;
        let requests = GivingBack {
            backend,
            issuer,
            attempt: &self.attempt,
            token: self.token,
            sharing: self.decisions.terms.sharing,
        };
        let forever = pin!(pending());
        let ended = run(&mut self.decisions, how, &requests, &**runtime, forever).await;
        match ended.answer {
            Answer::Failed(failure) => Err(ended.error_of(failure)),
            answer => Ok(answer),
        }
    }

    /// Nothing is left to clean up.
    pub(super) const fn disarm(&mut self) {
        self.decisions.forget();
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if !self.decisions.owes() {
            return;
        }
        let Inner {
            backend,
            runtime,
            issuer,
            meter,
            ..
        } = &*self.locks;
        let (backend, issuer) = (backend.clone(), issuer.clone());
        let (runtime, meter) = (Arc::clone(runtime), Arc::clone(meter));
        let (attempt, token) = (self.attempt.clone(), self.token);
        let mut decisions = self.decisions.clone();
        let finished = Box::pin(async move {
            let requests = GivingBack {
                backend: &backend,
                issuer: &issuer,
                attempt: &attempt,
                token,
                sharing: decisions.terms.sharing,
            };
            let forever = pin!(pending());
            let ended = run(&mut decisions, Event::Gone, &requests, &*runtime, forever).await;
            if let Ended {
                answer: Answer::Abandoned,
                error,
            } = ended
            {
                debug!(?error, "gave up cleaning up: the lease ends by its ttl");
                meter.abandoned.add(1);
            }
        });
        if !self.locks.watchdog.finish(finished) {
            debug!("the watchdog has ended: the lease runs out by its ttl");
            self.locks.meter.abandoned.add(1);
        }
    }
}

/// The requests that give back what an attempt has.
struct GivingBack<'a> {
    backend: &'a LockService,
    issuer: &'a Issuer,
    attempt: &'a AttemptRef,
    token: Option<FencingToken>,
    sharing: Sharing,
}

impl Requests for GivingBack<'_> {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        let (Request::Release { tombstone }, Some(token)) = (request, self.token) else {
            self.backend.cancel(self.attempt).await?;
            return Ok(Reply::Cancelled);
        };
        let lease = sequencer(self.issuer, self.attempt, token);
        let released = match self.sharing {
            Sharing::Holds => self.backend.release_hold(&lease, self.attempt.id).await,
            _ => self.backend.release(&lease, tombstone).await,
        };
        released.map(Reply::Released)
    }
}

pub(super) fn sequencer(issuer: &Issuer, attempt: &AttemptRef, token: FencingToken) -> Sequencer {
    Sequencer::new(
        issuer.clone(),
        attempt.resource.clone(),
        token,
        attempt.holder,
    )
}
