//! The tables of jobs, and the other calls that the crate `fenced-jobs` needs of a store. No other
//! crate may rely on this module. [`JobRows`] (`job_rows.rs`) has the operations. Postgres
//! implements them by SQL functions, and `job_statements.rs` implements them for the other
//! databases. `slot_state.rs` is the answer to a look.

mod job_rows;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod job_statements;
mod slot_state;

pub use self::{
    job_rows::{JobRows, Undone, is_time},
    slot_state::{SlotState, Standing},
};
pub use crate::fenced_locks::until_lost;
use crate::{FenceError, FencedStore, FencedTx, Storage};

/// A session that reads what is committed now.
///
/// # Errors
/// If the store has none, or does not answer.
pub async fn to_read<DB: Storage>(store: &FencedStore<DB>) -> Result<DB::Reading, FenceError> {
    DB::read(&store.access).await
}

/// Call it between a statement of the user and a statement of this module.
///
/// # Errors
/// Those of the database. A statement of the user may have been dropped: roll back.
///
/// # Cancel safety
/// Cancel safe, if the transaction is rolled back.
pub async fn catch_up<DB: Storage>(tx: &mut FencedTx<DB>) -> Result<(), FenceError> {
    tx.catch_up().await
}

/// The events of jobs that are worth an alert.
pub mod counted {
    pub use crate::counted::{job_late, job_run, job_taken_over};
}
