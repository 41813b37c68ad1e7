//! A store in memory, for tests of your own: the same claims, refusals, jobs and leaders, without a
//! database.
//!
//! `tables.rs` has its rows, and `rules.rs` decides about claims and transactions. `calls.rs` makes
//! it a [`Storage`](crate::Storage). `session.rs` reads and writes, `transaction.rs` is an open
//! transaction, and `job_rows.rs` has the tables of jobs. [`Wire`] (`wire.rs`) is where a test may
//! delay and lose messages.

mod calls;
mod forget;
mod job_rows;
mod options;
mod rules;
mod session;
mod tables;
mod transaction;
mod wire;

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use lock_core::backend::{Runtime, support::lock};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::Notify;

pub use self::{
    options::MemoryTxOptions,
    session::MemorySession,
    transaction::MemoryTx,
    wire::{Answer, Call, Wire},
};
use self::{rules::Rules, tables::Tables};
use crate::{FenceError, FencedLocks, FencedStore};

/// Keeps marks and rows in memory. A row is a value under a name. Clones share the same memory.
///
/// A transaction keeps its writes to itself until it commits. It reads what is committed. The
/// commit fails with [`FenceError::Serialization`] if another transaction has changed a row that
/// this one has read or written.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
///
/// use fenced_store::{FencedLocks, Memory, MemoryFencedStore};
/// use lock_core::backend::TokioRuntime;
///
/// let memory = Memory::new(Arc::new(TokioRuntime));
/// memory.set("balance", &100)?;
/// let store = MemoryFencedStore::in_memory(memory.clone());
/// let accounts = FencedLocks::new(palisade::connect("memory:").await?, store);
///
/// let guard = accounts.acquire("account:42").await?;
/// let mut tx = guard.begin().await?;
/// let balance: Option<i64> = tx.get("balance")?;
/// tx.set("balance", &(balance.unwrap_or_default() - 10))?;
/// tx.commit().await?;
/// assert_eq!(memory.get("balance")?, Some(90));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
    wire: Option<Arc<dyn Wire>>,
}

struct Shared {
    state: Mutex<State>,
    /// A transaction has ended, or a claim waits no longer.
    changed: Notify,
    runtime: Arc<dyn Runtime>,
}

#[derive(Debug, Default)]
struct State {
    rules: Rules,
    tables: Tables,
}

/// A fenced store in memory.
pub type MemoryFencedStore = FencedStore<Memory>;

/// A lock service combined with a fenced store in memory.
pub type MemoryFencedLocks = FencedLocks<Memory>;

impl Memory {
    /// An empty memory. It counts its waits, and the pauses of jobs, by the clock of this runtime.
    #[must_use]
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            changed: Notify::new(),
            runtime,
        };
        Self {
            shared: Arc::new(shared),
            wire: None,
        }
    }

    /// The same memory, reached through a [`Wire`] of your own.
    #[must_use]
    pub fn through(&self, wire: Arc<dyn Wire>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            wire: Some(wire),
        }
    }

    /// The committed value under this name.
    ///
    /// # Errors
    /// [`FenceError::Db`] if the value is of another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, FenceError> {
        tables::decoded(lock(&self.shared.state).tables.value(name))
    }

    /// Writes at once, past every fence: for the data that a test begins with, and for the
    /// counterexample without a fence.
    ///
    /// # Errors
    /// [`FenceError::Db`] if the value cannot be written as JSON.
    pub fn set<T: Serialize>(&self, name: &str, value: &T) -> Result<(), FenceError> {
        let value = tables::encoded(value)?;
        lock(&self.shared.state).tables.set(name, value);
        Ok(())
    }

    /// The number of transactions that are open.
    #[must_use]
    pub fn open_transactions(&self) -> usize {
        lock(&self.shared.state).rules.open()
    }
}

impl FencedStore<Memory> {
    /// A store in memory. It needs no migration.
    #[must_use]
    pub fn in_memory(memory: Memory) -> Self {
        Self::over(memory)
    }

    /// The memory.
    #[must_use]
    pub const fn memory(&self) -> &Memory {
        &self.access
    }

    /// The same store, with these settings for claims and transactions.
    #[must_use]
    pub fn with_options(self, options: MemoryTxOptions) -> Self {
        self.with_tx_options(options)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}
