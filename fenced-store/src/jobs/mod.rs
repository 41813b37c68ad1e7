//! The tables of jobs, and what else the crate `fenced-jobs` needs of a store. No other crate may
//! rely on it.

#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod by_statements;
pub mod counted;
mod decode;
mod rows;
mod state;

pub use self::{
    rows::{JobRows, Undone, is_time},
    state::{SlotState, Standing},
};
pub use crate::{fenced_locks::until_lost, leaked::to_read};
