use std::{borrow::Borrow, ops::Deref, sync::Arc, time::Duration};

use fenced_store::{
    AcquireFenced, FenceError, FencedGuard, FencedLocks, FencedTx, Memory, Receipt,
};
use lock_core::{
    Acquire, LeaseGuard, LockManager, Plausibility, Released, ResourceName, Ttl, backend::Runtime,
};

use crate::{
    coverage::PAUSED,
    edge::Edge,
    judge::act::{Act, Outcome, WorkId, WriteId},
    plan::{Fault, Plan, Work},
    schedule::{Log, Weather},
    service::{Leg, Service},
    store::{Ledger, Watch},
    world::Process,
};

/// The surroundings that all clients of a schedule share.
pub(crate) struct Surroundings<S: Ledger> {
    pub(crate) plan: Plan,
    pub(crate) service: Service,
    pub(crate) network: Process,
    /// The process of the store in memory, which has its clock.
    pub(crate) store: Process,
    pub(crate) memory: Memory,
    pub(crate) data: S::Data,
    pub(crate) weather: Arc<Weather>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) edge: Arc<Edge>,
    pub(crate) log: Arc<Log>,
}

/// A client: a process with a manager of its own.
pub(crate) struct Me<S: Ledger> {
    number: u32,
    process: Process,
    pub(super) around: Arc<Surroundings<S>>,
    locks: LockManager,
    fenced: FencedLocks<S>,
}

impl<S: Ledger> Clone for Me<S> {
    fn clone(&self) -> Self {
        Self {
            number: self.number,
            process: self.process.clone(),
            around: Arc::clone(&self.around),
            locks: self.locks.clone(),
            fenced: self.fenced.clone(),
        }
    }
}

impl<S: Ledger> Me<S> {
    pub(crate) fn new(
        number: u32,
        process: Process,
        around: &Arc<Surroundings<S>>,
    ) -> Result<Self, lock_core::Error> {
        let runtime: Arc<dyn Runtime> = Arc::new(process.clone());
        let backend = around.service.client(number, Arc::clone(&runtime));
        let locks = LockManager::builder().build(backend)?;
        let store = S::store(around, number)
            .plausibility(Plausibility::unchecked())
            .runtime(runtime);
        Ok(Self {
            number,
            process,
            around: Arc::clone(around),
            fenced: FencedLocks::new(locks.clone(), store),
            locks,
        })
    }

    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    pub(crate) const fn process(&self) -> &Process {
        &self.process
    }

    pub(crate) const fn locks(&self) -> &LockManager {
        &self.locks
    }

    pub(crate) const fn fenced(&self) -> &FencedLocks<S> {
        &self.fenced
    }

    pub(crate) fn edge(&self) -> &Arc<Edge> {
        &self.around.edge
    }

    pub(crate) fn runtime(&self) -> &dyn Runtime {
        &self.process
    }

    pub(crate) fn ttl(&self) -> Ttl {
        let ttl = Ttl::new(self.around.plan.ttl);
        ttl.expect("plans draw valid lengths")
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.around.plan.service_is_sound()
    }

    pub(crate) fn store_clock_jumps(&self) -> bool {
        let mut faults = self.around.plan.faults.iter();
        faults.any(|(_, fault)| matches!(fault, Fault::StoreClock(_)))
    }

    pub(crate) fn act(&self, act: Act) {
        self.around.log.act(self.number, &act);
    }

    pub(crate) fn tell(&self, line: impl FnOnce() -> String) {
        self.around.log.tell(line);
    }

    /// As [`tell`](Self::tell), for a line that is written while another process runs.
    pub(crate) fn tell_of(&self, line: impl FnOnce() -> String) {
        let process = &self.process;
        process.tell_of(|| (process.name().into(), line()));
    }

    pub(crate) fn broke(&self, promise: &'static str, what: String) {
        self.around.log.broke(promise, what);
    }

    /// Notes a situation.
    pub(crate) fn saw(&self, name: &'static str) {
        self.around.log.coverage().note(name);
    }

    pub(crate) async fn think(&self, time: Duration) {
        self.runtime().sleep(time).await;
    }

    /// Stops the process here, if the plan says so.
    pub(crate) async fn at_place(&self, place: u8, plan: Work) {
        if let Some((at, pause)) = plan.stopped
            && at == place
        {
            let is_long = pause > self.around.plan.ttl;
            self.saw(if is_long {
                PAUSED
            } else {
                "stopped at a place"
            });
            self.process.pause_for(pause);
            self.think(Duration::from_nanos(1)).await;
        }
    }

    /// A resource that sections and leases share.
    pub(crate) fn resource(&self, number: u8) -> ResourceName {
        named(&format!("r{number}"))
    }

    /// A lease of the lock service alone, as the work asks for it.
    pub(crate) fn lease(&self, resource: &ResourceName, plan: Work) -> Acquire {
        let acquire = self.locks.acquire(resource).ttl(self.ttl());
        let acquire = match plan.wait {
            Some(wait) => acquire.wait(wait),
            None => acquire,
        };
        acquire.renew(plan.choice & 1 == 0)
    }

    /// A lease whose token is claimed, as the work asks for it.
    pub(crate) fn acquire(&self, resource: &ResourceName, plan: Work) -> AcquireFenced<S> {
        let acquire = self.fenced.acquire(resource).ttl(self.ttl());
        let acquire = match plan.wait {
            Some(wait) => acquire.wait(wait),
            None => acquire,
        };
        acquire.renew(plan.choice & 1 == 0)
    }

    pub(crate) fn asks(&self, work: WorkId, resource: &ResourceName) {
        self.act(Act::Asks {
            work,
            resource: resource.as_str().to_owned(),
        });
    }

    /// Reports a lease that an acquisition has just returned.
    pub(crate) fn holds(
        &self,
        work: WorkId,
        guard: &LeaseGuard,
        is_claimed: bool,
        is_shared: bool,
    ) {
        self.act(Act::Holds {
            work,
            resource: guard.resource().as_str().to_owned(),
            token: guard.token().get(),
            left: guard.remaining().unwrap_or_default(),
            is_claimed,
            is_shared,
        });
    }

    /// Reports the lease if the guard still has it.
    pub(crate) fn still_holds(&self, guard: &LeaseGuard) {
        if let Ok(left) = guard.remaining() {
            self.act(Act::StillHolds {
                resource: guard.resource().as_str().to_owned(),
                token: guard.token().get(),
                left,
            });
        }
    }

    /// Releases a lease, and reports the answer.
    pub(crate) async fn release(
        &self,
        guard: impl Releases,
        is_shared: bool,
    ) -> Result<Released, lock_core::Error> {
        let (resource, token) = (guard.resource().clone(), guard.token().get());
        let saw_loss = !guard.is_held();
        let released = guard.release().await;
        let was_held = released.as_ref().ok();
        self.act(Act::Released {
            resource: resource.as_str().to_owned(),
            token,
            was_held: was_held.map(|released| *released == Released::Released),
            saw_loss,
            is_shared,
        });
        released
    }

    /// Reads a row, and after a while writes it with a count that is greater by one.
    pub(crate) async fn write(
        &self,
        tx: &mut FencedTx<S>,
        name: &str,
        resource: &ResourceName,
        write: WriteId,
        takes: Duration,
    ) -> Result<(), FenceError> {
        self.around.watch.row(name, resource);
        let grant = tx.sequencers().find(|grant| grant.resource() == resource);
        let token = grant.map_or(0, |grant| grant.token().get());
        let row = self
            .unless_ended(S::row(tx, name).await)?
            .unwrap_or_default();
        self.act(Act::Reads {
            resource: resource.as_str().to_owned(),
            count: row.count,
        });
        self.think(takes).await;
        self.act(Act::Puts {
            write,
            name: name.to_owned(),
        });
        self.unless_ended(S::set_row(tx, name, &row.next(token, write)).await)
    }

    /// A new write.
    pub(crate) fn new_write(&self) -> WriteId {
        self.around.log.new_write()
    }

    /// Reports a write that is about to be committed.
    pub(crate) fn writes(&self, write: WriteId, token: u64) {
        self.act(Act::Writes { write, token });
    }

    /// Reports the outcome of a commit.
    pub(crate) fn wrote<E>(
        &self,
        write: WriteId,
        committed: &Result<Receipt, E>,
        error: fn(&E) -> &FenceError,
    ) {
        let committed = self.unless_ended(committed.as_ref().map_err(error));
        let outcome = Outcome::of(committed);
        self.act(Act::Wrote { write, outcome });
    }

    /// Notes that a claim has ended this transaction.
    fn unless_ended<T, E: Borrow<FenceError>>(&self, result: Result<T, E>) -> Result<T, E> {
        if let Err(error) = &result
            && matches!(error.borrow(), FenceError::Aborted)
        {
            self.saw("claim ended an older transaction");
        }
        result
    }

    /// The value that an unfenced client reads.
    pub(crate) fn read_unfenced(&self, resource: &ResourceName) -> u64 {
        self.around.log.judge().twin.read(resource.as_str())
    }

    /// An unfenced client writes, by a message that takes its time.
    pub(crate) fn write_unfenced(&self, guard: &LeaseGuard, read: u64) {
        let (around, number) = (Arc::clone(&self.around), self.number);
        let resource = guard.resource().as_str().to_owned();
        let fate = around
            .weather
            .to_store(number, Leg::Push, guard.token().get());
        self.around.network.start(async move {
            let runtime: &dyn Runtime = &around.network;
            runtime.sleep(fate.delay).await;
            if !fate.lost {
                around.log.act(number, &Act::Unfenced { resource, read });
            }
        });
    }
}

/// A name of ours, which is valid.
pub(crate) fn named(name: &str) -> ResourceName {
    ResourceName::new(name).expect("a name of ours is valid")
}

/// A guard that can be released.
pub(crate) trait Releases: Deref<Target = LeaseGuard> {
    fn release(self) -> impl Future<Output = Result<Released, lock_core::Error>> + Send;
}

impl<S: Ledger> Releases for FencedGuard<S> {
    fn release(self) -> impl Future<Output = Result<Released, lock_core::Error>> + Send {
        Self::release(self)
    }
}

impl Releases for Box<LeaseGuard> {
    fn release(self) -> impl Future<Output = Result<Released, lock_core::Error>> + Send {
        LeaseGuard::release(*self)
    }
}
