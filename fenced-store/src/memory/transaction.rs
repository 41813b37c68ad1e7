use std::{
    mem,
    ops::{Deref, DerefMut},
};

use lock_core::backend::support::{Tasks, lock};

use super::{MemorySession, rules::TxId};
use crate::{FenceError, storage::OpenTransaction};

/// An open transaction in memory. It is rolled back when it is dropped.
#[derive(Debug)]
pub struct MemoryTx {
    session: MemorySession,
    id: TxId,
    tasks: Tasks,
}

impl MemoryTx {
    pub(super) fn new(session: MemorySession, id: TxId, tasks: Tasks) -> Self {
        Self { session, id, tasks }
    }

    /// Stores the changes, unless a newer holder has ended the transaction, or another transaction
    /// was faster.
    pub(super) fn commit(mut self) -> Result<(), FenceError> {
        let changes = mem::take(&mut self.session.changes);
        let mut state = lock(&self.session.memory.shared.state);
        if !state.rules.is_open(self.id) {
            return Err(FenceError::Aborted);
        }
        if state.tables.contradicts(&changes) {
            let why = "another transaction has changed a row that this one has read";
            let source = sqlx::Error::Protocol(why.to_owned());
            return Err(FenceError::Serialization { source });
        }
        state.tables.apply(changes);
        Ok(())
    }
}

impl Drop for MemoryTx {
    fn drop(&mut self) {
        let shared = &self.session.memory.shared;
        lock(&shared.state).rules.leave(self.id);
        shared.changed.notify_waiters();
    }
}

impl OpenTransaction for MemoryTx {
    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    async fn roll_back(self) -> Result<(), FenceError> {
        Ok(())
    }
}

impl Deref for MemoryTx {
    type Target = MemorySession;

    fn deref(&self) -> &MemorySession {
        &self.session
    }
}

impl DerefMut for MemoryTx {
    fn deref_mut(&mut self) -> &mut MemorySession {
        &mut self.session
    }
}
