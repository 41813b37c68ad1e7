mod attempted;
mod fault;
mod planned_faults;
mod request;
mod wake_ups;

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex},
};

use futures_util::future::join_all;

use self::{
    attempted::Attempted,
    planned_faults::Script,
    request::{Sent, no_answer},
    wake_ups::WakeUps,
};
pub use self::{
    fault::{Fault, Gate, Until},
    planned_faults::Counts,
    wake_ups::WakeFault,
};
use lock_core::{
    Attempt, Capabilities, Error, FencingToken, Inspection, Listed, Operation, Released,
    ResourceName, Sequencer,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Forced, Grant, LockBackend, LockService,
        RenewRequest, Renewed, Requests, Runtime, support::lock,
    },
};

/// A wrapper around a lock service that loses, delays and repeats messages by a script.
///
/// Without a script it lets everything through. Clones are the same service. It counts its faults,
/// so that a test can check that its fault happened. If the fault did not happen, nothing was
/// tested.
///
/// # Examples
/// A release whose reply is lost is sent again: the client learns that the lease has ended.
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_core::Error> {
/// use std::sync::Arc;
///
/// use lock_core::{InitialToken, LockManager, Operation, Released, memory::MemoryBackend};
/// use lock_testing::{Chaos, Fault, ManualClock};
///
/// let clock = Arc::new(ManualClock::new());
/// let service = Arc::new(MemoryBackend::new(clock.clone(), InitialToken::Clock));
/// let chaos = Chaos::new(service, clock.clone());
/// let locks = LockManager::builder().build(chaos.clone())?;
///
/// let guard = locks.acquire("account").await?;
/// chaos.next(Operation::Release, Fault::DropReply);
/// assert_eq!(guard.release().await?, Released::Released);
/// assert!(locks.try_acquire("account").await?.granted().is_some());
/// assert_eq!(chaos.counts(Operation::Release).replies_dropped, 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Chaos {
    service: LockService,
    runtime: Arc<dyn Runtime>,
    script: Arc<Mutex<Script>>,
    late: Arc<Mutex<Vec<Sent>>>,
    wake_ups: Arc<WakeUps>,
}

impl Chaos {
    /// Puts faults between clients and this service. Delays follow the clock of this runtime.
    #[must_use]
    pub fn new(service: impl Into<LockService>, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            service: service.into(),
            runtime,
            script: Arc::default(),
            late: Arc::default(),
            wake_ups: Arc::default(),
        }
    }

    /// Scripts the fault of the next request of this operation that has no scripted fault yet. Call
    /// this several times to make a script.
    pub fn next(&self, operation: Operation, fault: Fault) {
        lock(&self.script).next(operation, fault);
    }

    /// Sets the fault of every request of this operation that has no scripted fault.
    pub fn always(&self, operation: Operation, fault: Fault) {
        lock(&self.script).always(operation, fault);
    }

    /// Sets the fate of every wake-up from now on.
    pub fn wake_ups(&self, fault: WakeFault) {
        self.wake_ups.set(fault);
    }

    /// The number of wake-ups that were doubled, made up, or overheard.
    #[must_use]
    pub fn wake_faults(&self) -> usize {
        self.wake_ups.faults()
    }

    /// Whether a waiter got a full lease with its wake-up, so that it would hear no second wake-up.
    pub(crate) fn was_whole(&self) -> bool {
        self.wake_ups.was_whole()
    }

    /// Forgets all scripted faults that have not happened yet, so that every request goes through.
    pub fn calm(&self) {
        lock(&self.script).clear();
    }

    /// Sends the copies and the postponed requests that have been kept, all at once. Their replies
    /// are lost. Returns the number of these requests.
    ///
    /// Completes when all have been answered. A late acquire looks once, and takes a place in the
    /// queue if the request was for one.
    ///
    /// # Cancel safety
    /// Each of the requests may or may not have arrived. None is kept.
    pub async fn deliver_late(&self) -> usize {
        let late = std::mem::take(&mut *lock(&self.late));
        let sent = late.len();
        for request in &late {
            let mut script = lock(&self.script);
            script.counts_mut(request.operation()).delivered_late += 1;
        }
        join_all(late.into_iter().map(|request| request.send(&self.service))).await;
        sent
    }

    /// The counts of the requests of this operation.
    #[must_use]
    pub fn counts(&self, operation: Operation) -> Counts {
        lock(&self.script).counts(operation)
    }

    /// The number of faults scripted with [`next`](Chaos::next) that have not happened yet.
    #[must_use]
    pub fn unused(&self) -> usize {
        lock(&self.script).unused()
    }

    /// Sends a request with the scripted fault. `lost` is the caller's result if no answer comes.
    async fn send<T, F>(
        &self,
        sent: Sent,
        lost: impl FnOnce(&str) -> T + Send,
        call: impl FnOnce() -> F + Send,
    ) -> T
    where
        F: Future<Output = T> + Send,
    {
        self.send_noting(sent, lost, call).await.1
    }

    /// As `send`. Also returns the fault.
    async fn send_noting<T, F>(
        &self,
        sent: Sent,
        lost: impl FnOnce(&str) -> T + Send,
        call: impl FnOnce() -> F + Send,
    ) -> (Fault, T)
    where
        F: Future<Output = T> + Send,
    {
        let fault = lock(&self.script).take(sent.operation());
        let answer = match &fault {
            Fault::Pass => call().await,
            Fault::DropRequest => lost("chaos dropped the request"),
            Fault::DropReply => {
                drop(call().await);
                lost("chaos dropped the reply")
            }
            Fault::DelayRequest(until) => {
                until.over(&*self.runtime).await;
                call().await
            }
            Fault::DelayReply(until) => {
                let reply = call().await;
                until.over(&*self.runtime).await;
                reply
            }
            Fault::Duplicate => {
                lock(&self.late).push(sent);
                call().await
            }
            Fault::Postpone => {
                lock(&self.late).push(sent);
                lost("chaos postponed the request")
            }
        };
        (fault, answer)
    }
}

#[deny(clippy::missing_trait_methods)]
impl LockBackend for Chaos {
    fn kind(&self) -> &'static str {
        self.service.kind()
    }

    fn capabilities(&self) -> Capabilities {
        self.service.capabilities()
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        Attempted::new(self, request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.send(
            Sent::Renew(leases.to_vec()),
            |why| leases.iter().map(|_| Err(no_answer(why))).collect(),
            || self.service.renew(leases),
        )
        .await
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        self.send(
            Sent::Release(lease.clone(), tombstone),
            |why| Err(no_answer(why)),
            move || self.service.release(lease, tombstone),
        )
        .await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.send(
            Sent::Cancel(attempt.clone()),
            |why| Err(no_answer(why)),
            || self.service.cancel(attempt),
        )
        .await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        self.send(
            Sent::Inspect(resource.clone()),
            |why| Err(no_answer(why)),
            || self.service.inspect(resource),
        )
        .await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        self.send(
            Sent::ReleaseHold(lease.clone(), attempt),
            |why| Err(no_answer(why)),
            move || self.service.release_hold(lease, attempt),
        )
        .await
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        self.send(
            Sent::ForceRelease(resource.clone(), token),
            |why| Err(no_answer(why)),
            move || self.service.force_release(resource, token),
        )
        .await
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        self.send(
            Sent::List,
            |why| Err(no_answer(why)),
            || self.service.list(),
        )
        .await
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        self.send(
            Sent::AcquireTogether(requests.to_vec()),
            |why| Err(no_answer(why)),
            || self.service.acquire_together(requests),
        )
        .await
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        self.service.part_of(resource)
    }

    fn lease_name<'a>(&self, resource: &'a ResourceName) -> Cow<'a, str> {
        self.service.lease_name(resource)
    }
}

impl fmt::Debug for Chaos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chaos")
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}
