use std::{fmt, sync::Arc};

use lock_core::{AttemptRef, BoxFuture, Error, LockService, Moment, Outcome, Released, Sequencer};
use tokio::sync::oneshot;

/// A shared lease, or a request for one, that still has to be ended at the service. Ending it twice
/// is harmless.
#[derive(Clone, Debug)]
pub(super) struct PendingRelease {
    pub(super) attempt: AttemptRef,
    /// The release that ended the shared lease, if it was ended by one.
    pub(super) release: Option<Arc<LastRelease>>,
    /// Whether an earlier copy of that release may have been lost.
    pub(super) again: bool,
    /// The moment by which the service has ended it by itself.
    pub(super) until: Moment,
}

/// The release of the last holder of a shared lease.
#[derive(Debug)]
pub(super) struct LastRelease {
    /// The lease that is released at the service.
    pub(super) shared: Sequencer,
    /// The lease that the last holder has released.
    pub(super) current: Sequencer,
    /// Whether no late request of the shared lease can arrive.
    pub(super) all_answered: bool,
}

/// The answer to everybody who waits for the end.
pub(super) type Answer = Result<Released, Error>;

/// The end of a shared lease, begun by its release and completed by the driver.
pub(super) struct Ending {
    pub(super) pending: PendingRelease,
    pub(super) answer: BoxFuture<'static, Answer>,
}

/// The pending releases of one resource.
#[derive(Debug, Default)]
pub(super) struct PendingReleases(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    pending: PendingRelease,
    /// Whether it was tried, and there was no answer.
    failed: bool,
    /// The callers that wait for the end.
    callers: Vec<oneshot::Sender<Answer>>,
}

impl PendingRelease {
    /// Ends the shared lease at the service. A lease that turns out not to be held is cancelled
    /// nevertheless: if it ran out before its grant was confirmed, its request is still queued.
    ///
    /// # Cancel safety
    /// It may or may not have been ended. Ending it again is harmless.
    pub(super) fn end(&self, service: &LockService) -> BoxFuture<'static, Answer> {
        let (pending, service) = (self.clone(), service.clone());
        Box::pin(async move {
            if let Some(release) = &pending.release
                && release.send(&service, pending.again).await? == Released::Released
            {
                return Ok(Released::Released);
            }
            service.cancel(&pending.attempt).await?;
            Ok(Released::NotHolder)
        })
    }

    fn is_of(&self, lease: &Sequencer) -> bool {
        let release = self.release.as_ref();
        release.is_some_and(|release| release.current == *lease)
    }
}

impl LastRelease {
    async fn send(&self, service: &LockService, again: bool) -> Answer {
        if self.all_answered {
            service.release_answered(&self.shared, again).await
        } else {
            service.release(&self.shared).await
        }
    }
}

impl PendingReleases {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, pending: PendingRelease) {
        self.0.push(Entry {
            pending,
            failed: false,
            callers: Vec::new(),
        });
    }

    pub(super) fn all(&self) -> Vec<PendingRelease> {
        self.0.iter().map(|entry| entry.pending.clone()).collect()
    }

    /// One that is to be ended now: it was not tried yet, or somebody waits for it.
    pub(super) fn due(&self) -> Option<PendingRelease> {
        let is_due = |entry: &&Entry| !entry.failed || !entry.callers.is_empty();
        let due = self.0.iter().find(is_due);
        due.map(|entry| entry.pending.clone())
    }

    /// The answer to the end of each of them.
    pub(super) fn wait_for_all(&mut self) -> Vec<oneshot::Receiver<Answer>> {
        self.0.iter_mut().map(Entry::wait).collect()
    }

    /// The answer to the end of the one that this release began.
    pub(super) fn wait_for(
        &mut self,
        lease: &Sequencer,
    ) -> Option<(PendingRelease, oneshot::Receiver<Answer>)> {
        let mut all = self.0.iter_mut();
        let entry = all.find(|entry| entry.pending.is_of(lease))?;
        let answer = entry.wait();
        Some((entry.pending.clone(), answer))
    }

    /// The service has answered, or has not. In the second case the release stays pending, and is
    /// made when somebody waits for it, or before the next request.
    pub(super) fn answered(&mut self, pending: &PendingRelease, answer: &Answer) {
        let is_it = |entry: &Entry| entry.pending.attempt == pending.attempt;
        let Some(place) = self.0.iter().position(is_it) else {
            return;
        };
        let entry = &mut self.0[place];
        for caller in entry.callers.drain(..) {
            // Nobody is told who has gone away.
            drop(caller.send(answer.clone()));
        }
        match answer {
            Ok(_) => drop(self.0.remove(place)),
            Err(error) => {
                entry.failed = true;
                entry.pending.again |= error.outcome() == Outcome::Unknown;
            }
        }
    }

    /// Forgets leases that the service has ended by itself, and says when the next is forgotten.
    pub(super) fn forget_old(&mut self, now: Moment) -> Moment {
        self.0.retain(|entry| entry.pending.until > now);
        let until = self.0.iter().map(|entry| entry.pending.until).min();
        until.unwrap_or(Moment::NEVER)
    }
}

impl fmt::Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pending.fmt(f)
    }
}

impl Entry {
    fn wait(&mut self) -> oneshot::Receiver<Answer> {
        let (caller, answer) = oneshot::channel();
        self.callers.push(caller);
        answer
    }
}
