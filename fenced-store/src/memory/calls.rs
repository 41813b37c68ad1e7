use std::{
    io,
    ops::{Deref, DerefMut},
    pin::pin,
    time::Duration,
};

use lock_core::{
    ResourceName, Sequencer,
    backend::support::{Tasks, lock},
};
use scopeguard::guard;

use super::{Call, Memory, MemorySession, MemoryTx, MemoryTxOptions, State};
use crate::{
    FenceError, HighWater, Storage,
    admin::AdminError,
    forget::{Batch, Forget, Rows},
    rule::Claim,
    transaction::begin_request::{BeginRequest, Fence},
};

impl Storage for Memory {
    const KIND: &'static str = "memory";

    type Access = Self;
    type Session = MemorySession;
    type Reading = MemoryReading;
    type Tx = MemoryTx;
    type TxOptions = MemoryTxOptions;
    type Jobs = Self;

    fn lock_timeout(options: &MemoryTxOptions) -> Option<Duration> {
        Some(options.lock_timeout)
    }

    async fn claim(
        memory: &Self,
        options: &MemoryTxOptions,
        sequencer: &Sequencer,
    ) -> Result<(), FenceError> {
        let work = raise(memory.clone(), options.clone(), sequencer.clone());
        memory.ask(Call::Claim, work).await.unwrap_or_else(broken)
    }

    async fn settle(
        memory: &Self,
        options: &MemoryTxOptions,
        sequencer: &Sequencer,
    ) -> Result<(), FenceError> {
        let work = settled(memory.clone(), options.clone(), sequencer.clone());
        memory.ask(Call::Settle, work).await.unwrap_or_else(broken)
    }

    async fn begin(
        memory: &Self,
        options: &MemoryTxOptions,
        request: &BeginRequest,
    ) -> Result<MemoryTx, FenceError> {
        let grants = request.fences().map(Fence::sequencer).cloned().collect();
        let (options, tasks) = (options.clone(), request.tasks().clone());
        let work = entered(memory.clone(), options, grants, tasks);
        memory.ask(Call::Begin, work).await.unwrap_or_else(broken)
    }

    async fn commit(tx: MemoryTx) -> Result<(), FenceError> {
        let memory = tx.memory.clone();
        let committed = memory.ask(Call::Commit, async { tx.commit() }).await;
        committed.unwrap_or_else(|| {
            let source = connection_broken();
            Err(FenceError::CommitUnknown { source })
        })
    }

    async fn read(memory: &Self) -> Result<MemoryReading, FenceError> {
        let session = MemorySession::new(memory, None);
        let reading = async { Ok(MemoryReading(session)) };
        memory.ask(Call::Read, reading).await.unwrap_or_else(broken)
    }

    async fn high_water(
        session: &mut MemorySession,
        resource: &ResourceName,
    ) -> Result<Option<HighWater>, FenceError> {
        session.looking(|_, state| state.rules.mark(resource).cloned())
    }

    async fn refresh(memory: &Self, grant: &Sequencer) -> Result<bool, FenceError> {
        let now = memory.shared.runtime.unix_time();
        Ok(lock(&memory.shared.state).rules.refresh(grant, now))
    }

    async fn forget(
        memory: &Self,
        _: &MemoryTxOptions,
        order: &Forget,
        rows: Rows,
        _: &str,
    ) -> Result<Batch, AdminError> {
        match rows {
            Rows::Marks => memory.forget(order),
            Rows::Leases => Ok(Batch::default()),
        }
    }

    async fn state_longest_hold(memory: &Self, hold: Duration) -> Result<(), FenceError> {
        let rules = &mut lock(&memory.shared.state).rules;
        rules.longest_hold = std::cmp::max(rules.longest_hold, hold);
        Ok(())
    }
}

/// A session that only reads.
#[derive(Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Storage`")]
pub struct MemoryReading(MemorySession);

impl Deref for MemoryReading {
    type Target = MemorySession;

    fn deref(&self) -> &MemorySession {
        &self.0
    }
}

impl DerefMut for MemoryReading {
    fn deref_mut(&mut self) -> &mut MemorySession {
        &mut self.0
    }
}

/// Raises the mark when no transaction of the resource is open. A claim that is refused does not
/// wait.
async fn raise(
    memory: Memory,
    options: MemoryTxOptions,
    sequencer: Sequencer,
) -> Result<(), FenceError> {
    let resource = sequencer.resource();
    let now = memory.shared.runtime.unix_time();
    let raised = |state: &mut State| {
        let claim = state.rules.claim(&sequencer)?;
        if state.rules.is_busy(resource) {
            return Ok(None);
        }
        if claim == Claim::Raise {
            state.rules.raise(&sequencer, now);
        }
        Ok(Some(()))
    };
    if let Some(done) = raised(&mut lock(&memory.shared.state))? {
        return Ok(done);
    }
    lock(&memory.shared.state).rules.wait(resource);
    let _waits = guard(&memory, |memory| {
        lock(&memory.shared.state).rules.wait_no_longer(resource);
        memory.shared.changed.notify_waiters();
    });
    if let Some(done) = memory.in_time(&options, raised).await? {
        return Ok(done);
    }
    let mut state = lock(&memory.shared.state);
    let is_newer = state.rules.claim(&sequencer)? == Claim::Raise;
    if is_newer && options.terminate_older {
        state.rules.terminate(resource);
    }
    raised(&mut state)?.ok_or_else(busy)
}

/// Waits until no transaction of the resource is open, and checks the mark.
async fn settled(
    memory: Memory,
    options: MemoryTxOptions,
    sequencer: Sequencer,
) -> Result<(), FenceError> {
    let over = |state: &mut State| {
        let is_busy = state.rules.is_busy(sequencer.resource());
        Ok((!is_busy).then(|| state.rules.check(&sequencer)))
    };
    memory.in_time(&options, over).await?.ok_or_else(busy)?
}

/// Enters one resource after the other, in the order of their names. It waits behind the claims
/// that wait for a resource.
async fn entered(
    memory: Memory,
    options: MemoryTxOptions,
    grants: Vec<Sequencer>,
    tasks: Tasks,
) -> Result<MemoryTx, FenceError> {
    let id = lock(&memory.shared.state).rules.begin();
    let session = MemorySession::new(&memory, Some(id));
    let tx = MemoryTx::new(session, id, tasks);
    for grant in &grants {
        let enter = |state: &mut State| {
            if state.rules.is_claimed_by_a_waiter(grant.resource()) {
                return Ok(None);
            }
            state.rules.check(grant)?;
            state.rules.enter(id, grant.resource()).map(Some)
        };
        memory.in_time(&options, enter).await?.ok_or_else(busy)?;
    }
    Ok(tx)
}

impl Memory {
    /// Tries until a try succeeds, for as long as the options say. `None` if no try has succeeded.
    async fn in_time<T>(
        &self,
        options: &MemoryTxOptions,
        mut attempt: impl FnMut(&mut State) -> Result<Option<T>, FenceError> + Send,
    ) -> Result<Option<T>, FenceError> {
        let until = self.shared.runtime.now() + options.lock_timeout;
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            if let Some(done) = attempt(&mut lock(&self.shared.state))? {
                return Ok(Some(done));
            }
            let left = until.since(self.shared.runtime.now());
            if self.shared.runtime.timeout(left, changed).await.is_none() {
                return Ok(None);
            }
        }
    }
}

fn busy() -> FenceError {
    let why = "a transaction or a claim of the resource is in the way";
    let source = io::Error::new(io::ErrorKind::TimedOut, why).into();
    FenceError::Busy { source }
}

fn broken<T>() -> Result<T, FenceError> {
    Err(connection_broken().into())
}

fn connection_broken() -> sqlx::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "no answer came").into()
}
