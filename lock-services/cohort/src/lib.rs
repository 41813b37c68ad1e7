//! A [`Cohort`] wraps a lock service: it passes a lock on among the waiters of this process.
#![forbid(unsafe_code)]

mod backend;
mod driver;
mod pending_release;
mod queue;
mod queues;
mod renewing;
mod shared_lease;
mod waiters;
mod waiting;

use std::{
    fmt,
    future::poll_fn,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard},
    task::Poll,
};

use self::{
    driver::Driver,
    pending_release::{Ending, PendingRelease},
    queues::{Queues, Release, Ticket},
};
use lock_core::{
    Clock, Error, ErrorKind, Extension, LockService, Moment, Operation, Released, ResourceName,
    Sequencer,
    support::{Tasks, lock},
};

/// A lock service whose waiters in this process wait in one queue, and pass the lock on among
/// themselves without asking the service.
///
/// The process asks for one lease on behalf of its queue, the *shared lease*, and for as many
/// tokens as there are waiters. Each waiter becomes a holder with a token of its own; the service
/// sees one lease. So a whole queue costs one request to acquire and one to release. The price is
/// that waiters of other processes are overtaken: up to [`passes`](Cohort::new) grants in a row
/// stay here. After that, or after a quarter of the ttl, or when the queue is empty, the shared
/// lease is released, and the process goes to the end of the service's queue.
///
/// # Which acquisitions join
/// Acquisitions that a watchdog of this process keeps up for at least their ttl
/// ([`Upkeep::Watchdog`](lock_core::Upkeep::Watchdog)). All others go directly to the service, as
/// they do without a cohort: those that another process may know of, such as detached leases and
/// acquisitions with a given holder; those with a floor or a reserve; and looks
/// ([`Wait::Never`](lock_core::Wait::Never)) at a resource that this process waits for or holds. A
/// guard that joined and is [detached](lock_core::LeaseGuard::detach) later remains this process's:
/// the service does not know its sequencer.
///
/// A shared lease has the ttl and the note of the waiter that was at the head when it was asked
/// for. The lock is not passed to a waiter whose ttl is shorter than the time left: the shared
/// lease ends and the waiter asks for one of its own. `max_waiters` counts the queue of the process
/// and, for its head, the queue of the service.
///
/// If the service cannot [reserve](Extension::Reserve) tokens, everything goes directly to it.
///
/// # Order
/// A token that was reserved long ago must not go to a task that began after another process was
/// granted a greater one, which can happen when the shared lease was ended by force. So the lock is
/// passed only to waiters that were already in the queue when the lease's last answered request,
/// its acquire or a renewal, was sent. A shared lease that is lost takes the rest of its tokens
/// with it.
///
/// # Tasks
/// Each queue has a task of the runtime on which the cohort was made. It speaks to the service for
/// all waiters, whether or not they are polled, and ends with the queue. When the runtime has
/// ended, every acquire that joins fails with [`ErrorKind::ShutDown`].
///
/// # What others see
/// One lease: the fingerprint of the shared lease, its first token, and one place of the process in
/// the service's queue, however many wait here. In this process, inspecting and listing show the
/// present holder instead. [`force_release`](lock_core::LockBackend::force_release) of the token
/// shown ends the whole shared lease, unless this process has passed the lock on since then: then
/// it is [`NotHeld`](lock_core::Forced::NotHeld). If another process ends the shared lease by
/// force, this one learns of it by its next renewal or release. Until then the lock may still be
/// passed to waiters. The store refuses their tokens, like those of any holder that has lost its
/// lease and does not know it yet.
pub struct Cohort {
    shared: Arc<Shared>,
}

/// What the calls share with the drivers of the queues.
struct Shared {
    service: LockService,
    clock: Arc<dyn Clock>,
    passes: NonZeroU32,
    /// Whether the service can reserve tokens. Without a reserve everybody goes directly to the
    /// service.
    reserves: bool,
    tasks: Tasks,
    /// Never held across an await; every step under it is short.
    queues: Mutex<Queues>,
}

impl Cohort {
    /// The default number of grants in a row that may stay in a process: 32. With more there is
    /// little to gain, and the others wait longer.
    pub const PASSES: NonZeroU32 = NonZeroU32::new(32).expect("not zero");

    /// Puts the waiters of this process into one queue. The clock must be that of the service.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    #[must_use]
    pub fn new(service: impl Into<LockService>, clock: Arc<dyn Clock>, passes: NonZeroU32) -> Self {
        let service = service.into();
        Self {
            shared: Arc::new(Shared {
                queues: Mutex::new(Queues::new(passes)),
                reserves: service.capabilities().has(Extension::Reserve),
                tasks: Tasks::here(),
                service,
                clock,
                passes,
            }),
        }
    }

    /// The same for a service that has to be able to reserve tokens: without a reserve a cohort is
    /// in vain.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a service that cannot.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn reserving(
        service: impl Into<LockService>,
        clock: Arc<dyn Clock>,
        passes: NonZeroU32,
    ) -> Result<Self, Error> {
        let service = service.into();
        if service.capabilities().has(Extension::Reserve) {
            return Ok(Self::new(service, clock, passes));
        }
        let error = Error::not_applied(ErrorKind::Unsupported);
        let error = error.during(Operation::Connect, service.kind());
        Err(error.because("this lock service cannot reserve tokens: connect without a cohort"))
    }
}

impl Shared {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        lock(&self.queues)
    }

    /// The time is read under the lock, when nobody else can change anything: it decides who has
    /// what.
    fn queues_now(&self) -> (MutexGuard<'_, Queues>, Moment) {
        let queues = self.queues();
        (queues, self.clock.now())
    }

    /// Starts the driver of a queue. Its end is that of the queue.
    fn drive(self: &Arc<Self>, resource: &ResourceName, wake: Arc<tokio::sync::Notify>) {
        let driver = Driver::new(Arc::clone(self), resource.clone(), wake);
        drop(self.tasks.spawn(driver.run()));
    }

    fn leave(&self, ticket: &Ticket) {
        let (mut queues, now) = self.queues_now();
        queues.leave(ticket, now);
    }

    /// The service has answered the end of a shared lease, or has not.
    fn ended(&self, pending: &PendingRelease, answer: &pending_release::Answer) {
        let (mut queues, now) = self.queues_now();
        queues.ended(pending, answer, now);
    }

    /// Begins to end a shared lease at once, so that its request is ahead of what the caller sends
    /// next. The driver completes it.
    async fn begin_to_end(&self, pending: PendingRelease) {
        let mut answer = pending.end(&self.service);
        match poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
            Poll::Ready(answer) => self.ended(&pending, &answer),
            Poll::Pending => self.queues().complete(Ending { pending, answer }),
        }
    }

    /// Releases a lease of this process, or directly one that is not shared.
    async fn release<F>(
        &self,
        lease: &Sequencer,
        direct: impl FnOnce() -> F,
    ) -> Result<Released, Error>
    where
        F: Future<Output = Result<Released, Error>>,
    {
        let release = {
            let (mut queues, now) = self.queues_now();
            queues.release(lease, now)
        };
        let answer = match release {
            Release::Direct => return direct().await,
            Release::Answered(answer) => return Ok(answer),
            Release::Begin(pending, answer) => {
                self.begin_to_end(pending).await;
                answer
            }
            Release::Again(answer) => answer,
        };
        answer.await.unwrap_or_else(|_| Err(runtime_ended()))
    }

    /// Waits until all pending releases of this resource have been made.
    async fn settle(&self, resource: &ResourceName) -> Result<(), Error> {
        let answers = self.queues().wait_for_pending(resource);
        for answer in answers {
            answer.await.unwrap_or_else(|_| Err(runtime_ended()))?;
        }
        Ok(())
    }
}

fn runtime_ended() -> Error {
    Error::unknown(ErrorKind::ShutDown)
        .because("the runtime on which the cohort was made has ended")
}

impl fmt::Debug for Cohort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cohort")
            .field("service", &self.shared.service)
            .field("passes", &self.shared.passes)
            .finish_non_exhaustive()
    }
}
