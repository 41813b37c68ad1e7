//! The tables of jobs, and what else the crate `fenced-jobs` needs of a store. No other crate may
//! rely on it.

mod job_rows;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod job_statements;
mod slot_state;

pub use self::{
    job_rows::{JobRows, Undone, is_time},
    slot_state::{SlotState, Standing},
};
pub use crate::{fenced_locks::until_lost, transaction::leaked::to_read};

/// The events of jobs that are worth an alert.
pub mod counted {
    pub use crate::counted::{job_late, job_run, job_taken_over};
}
