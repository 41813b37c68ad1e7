use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use tracing::debug;

use super::{Inner, meter::Meter};
use crate::{
    AttemptId, AttemptRef, Clock, Error, Jitter, LockService, Released, RetryPolicy, Sequencer, Ttl,
};

/// Something to undo on the lock service although its caller is gone.
#[derive(Clone, Debug)]
pub(super) enum CleanUp {
    /// A lease whose guard was dropped, or whose release was interrupted.
    Release {
        lease: HeldLease,
        patience: Duration,
    },
    /// An attempt that was dropped, or whose answer was lost.
    Cancel {
        attempt: AttemptRef,
        patience: Duration,
    },
}

/// How long the clean-up of a lease that others may keep up goes on, at least. Its own ttl is no
/// bound for it: the others' may be longer, and then the lease outlives an outage that is longer
/// than this ttl.
const SHARED_PATIENCE_MIN: Duration = Duration::from_secs(60);

const RETRY_FIRST: Duration = Duration::from_millis(20);
/// The longest pause is this part of the time for which it goes on, within these bounds: a service
/// that is in trouble for a minute must not be asked by ever more that repeat it every second.
const RETRY_PART: u32 = 12;
const RETRY_MAX: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(5);

impl CleanUp {
    /// Tries until it succeeds or its time is over.
    async fn finish(mut self, backend: &LockService, clock: &dyn Clock, meter: &Meter) {
        let until = clock.now() + self.patience();
        let longest = (self.patience() / RETRY_PART).clamp(*RETRY_MAX.start(), *RETRY_MAX.end());
        let policy = RetryPolicy::exponential(RETRY_FIRST).longest(longest);
        // Nothing has to be spread: each began when its own guard was dropped.
        let mut pauses = policy.jitter(Jitter::None).pauses();
        loop {
            let error = match self.attempt(backend).await {
                Ok(None) => return,
                Ok(Some(rest)) => {
                    self = rest;
                    continue;
                }
                Err(error) => error,
            };
            let again = pauses.next().map(|pause| clock.now() + pause);
            let Some(again) = again.filter(|again| *again < until) else {
                debug!(%error, "gave up cleaning up: the lease ends when nobody renews it");
                meter.abandoned.add(1);
                return;
            };
            clock.sleep_until(again).await;
        }
    }

    /// Tries once, and returns what is left to do.
    async fn attempt(&self, backend: &LockService) -> Result<Option<Self>, Error> {
        match self {
            Self::Release { lease, .. } => Ok(match lease.release(backend, false).await? {
                Released::Released => None,
                Released::NotHolder => Some(lease.cancel()),
            }),
            Self::Cancel { attempt, .. } => {
                backend.cancel(attempt).await?;
                Ok(None)
            }
        }
    }

    /// How long to go on trying.
    const fn patience(&self) -> Duration {
        match self {
            Self::Release { patience, .. } | Self::Cancel { patience, .. } => *patience,
        }
    }
}

/// A lease together with the attempt that got it.
#[derive(Clone, Debug)]
pub(super) struct HeldLease {
    pub(super) sequencer: Sequencer,
    pub(super) attempt: AttemptId,
    pub(super) sharing: Sharing,
    pub(super) ttl: Ttl,
    /// As [`Grant::all_answered`](crate::Grant::all_answered).
    pub(super) all_answered: bool,
}

/// Who else may have the lease of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Nobody: nobody else knows the holder.
    Alone,
    /// Whoever repeats the acquisition. A release ends the lease for all of them.
    Repeated,
    /// Guards of one owner, each of which gives back its own hold.
    Holds,
}

impl Sharing {
    /// How long to try to give back what an acquisition of this ttl left behind. A lease that
    /// nobody else keeps up has ended by then, unless a renewal was under way.
    pub(super) fn patience(self, ttl: Ttl) -> Duration {
        match self {
            Self::Alone => ttl.get(),
            Self::Repeated | Self::Holds => std::cmp::max(ttl.get(), SHARED_PATIENCE_MIN),
        }
    }
}

impl HeldLease {
    /// Releases it. `again` says that an earlier copy of this request may have been lost.
    pub(super) async fn release(
        &self,
        backend: &LockService,
        again: bool,
    ) -> Result<Released, Error> {
        let lease = &self.sequencer;
        match self.sharing {
            Sharing::Holds => backend.release_hold(lease, self.attempt).await,
            Sharing::Alone if self.all_answered => backend.release_answered(lease, again).await,
            Sharing::Alone | Sharing::Repeated => backend.release(lease).await,
        }
    }

    /// What is left to do when the guard goes away without a release. Whoever repeats an
    /// acquisition may have been told of the same lease, so then only this attempt of it ends.
    pub(super) fn abandon(&self) -> CleanUp {
        match self.sharing {
            Sharing::Repeated => self.cancel(),
            Sharing::Alone | Sharing::Holds => self.finish_release(),
        }
    }

    /// What is left to do when a release was interrupted.
    pub(super) fn finish_release(&self) -> CleanUp {
        CleanUp::Release {
            lease: self.clone(),
            patience: self.sharing.patience(self.ttl),
        }
    }

    /// Gives up this attempt only. That is also what is left to do when the lease turns out not to
    /// be held any more: a lease that was never confirmed still has its place in the queue.
    pub(super) fn cancel(&self) -> CleanUp {
        let attempt = AttemptRef {
            resource: self.sequencer.resource().clone(),
            holder: self.sequencer.holder(),
            id: self.attempt,
        };
        CleanUp::Cancel {
            attempt,
            patience: self.sharing.patience(self.ttl),
        }
    }
}

/// When dropped, hands a clean-up to the watchdog, unless it was disarmed.
///
/// It is made *before* the await that may change the lock service, so it does not matter at which
/// await the caller goes away. Dropping it begins the clean-up and leaves the rest to the watchdog;
/// it never waits.
#[derive(Debug)]
pub(super) struct OnDrop {
    pub(super) locks: Arc<Inner>,
    clean_up: Option<CleanUp>,
}

impl OnDrop {
    pub(super) const fn new(locks: Arc<Inner>, clean_up: CleanUp) -> Self {
        Self {
            locks,
            clean_up: Some(clean_up),
        }
    }

    /// Replaces the clean-up.
    pub(super) fn turn_into(&mut self, clean_up: CleanUp) {
        self.clean_up = Some(clean_up);
    }

    /// Cleans up now, and waits for it. After an error, dropping this goes on with it.
    pub(super) async fn carry_out(&mut self) -> Result<(), Error> {
        while let Some(clean_up) = &self.clean_up {
            let attempt = |_| clean_up.attempt(&self.locks.backend);
            self.clean_up = self.locks.answered(attempt).await?;
        }
        Ok(())
    }

    /// Nothing is left to clean up.
    pub(super) fn disarm(&mut self) {
        self.clean_up = None;
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        let Some(clean_up) = self.clean_up.take() else {
            return;
        };
        let Inner {
            backend,
            clock,
            meter,
            ..
        } = &*self.locks;
        let (backend, clock, meter) = (backend.clone(), Arc::clone(clock), Arc::clone(meter));
        let finished = Box::pin(async move { clean_up.finish(&backend, &*clock, &meter).await });
        if !self.locks.watchdog.finish(finished) {
            debug!("the watchdog has ended: the lease runs out by its ttl");
            self.locks.meter.abandoned.add(1);
        }
    }
}
