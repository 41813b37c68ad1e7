use std::fmt;

use lock_core::backend::support::lock;
use serde::{Serialize, de::DeserializeOwned};

use super::{Memory, State, rules::TxId, tables, tables::Changes};
use crate::FenceError;

/// Reads and writes rows in memory. A fenced transaction derefs to this type.
pub struct MemorySession {
    pub(super) memory: Memory,
    /// The transaction; `None` if the session only reads.
    pub(super) tx: Option<TxId>,
    pub(super) changes: Changes,
}

impl MemorySession {
    pub(super) fn new(memory: &Memory, tx: Option<TxId>) -> Self {
        Self {
            memory: memory.clone(),
            tx,
            changes: Changes::default(),
        }
    }

    /// The value under this name, as this transaction sees it.
    ///
    /// # Errors
    /// [`FenceError::Aborted`] if the transaction was ended by a newer holder. [`FenceError::Db`]
    /// if the value is of another type.
    pub fn get<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, FenceError> {
        self.looking(|changes, state| tables::decoded(changes.row(&state.tables, name)))?
    }

    /// Writes a value under this name. It is stored when the transaction commits.
    ///
    /// # Errors
    /// [`FenceError::Aborted`] if the transaction was ended by a newer holder, or if this session
    /// only reads. [`FenceError::Db`] if the value cannot be written as JSON.
    pub fn set<T: Serialize>(&mut self, name: &str, value: &T) -> Result<(), FenceError> {
        let value = Some(tables::encoded(value)?);
        self.writing(|changes, state| changes.set_row(&state.tables, name, value))
    }

    /// Removes the value under this name.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn remove(&mut self, name: &str) -> Result<(), FenceError> {
        self.writing(|changes, state| changes.set_row(&state.tables, name, None))
    }

    /// Looks at the changes of this transaction and at what is committed.
    pub(super) fn looking<T>(
        &mut self,
        look: impl FnOnce(&mut Changes, &State) -> T,
    ) -> Result<T, FenceError> {
        let state = lock(&self.memory.shared.state);
        if self.tx.is_some_and(|tx| !state.rules.is_open(tx)) {
            return Err(FenceError::Aborted);
        }
        Ok(look(&mut self.changes, &state))
    }

    /// Looks as [`looking`](Self::looking) does, and may add a change.
    pub(super) fn writing(
        &mut self,
        write: impl FnOnce(&mut Changes, &State),
    ) -> Result<(), FenceError> {
        match self.tx {
            Some(_) => self.looking(write),
            None => Err(FenceError::Aborted),
        }
    }
}

impl fmt::Debug for MemorySession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySession")
            .field("tx", &self.tx)
            .finish_non_exhaustive()
    }
}
