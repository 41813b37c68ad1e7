//! Jobs that run once per slot, whatever happens to their runners.
//!
//! A *job* has a name, and its resource is `job:NAME`. A *slot* is what it runs once for: a time of
//! a schedule, or any text. [`FencedLocks::once`](crate::FencedLocks::once) runs one. It acquires
//! the lease, claims the token, looks whether the slot is done, does the work in a fenced
//! transaction, and marks the slot as done in that same transaction. So the work is committed with
//! its marker or not at all, and a runner that was paused or overtaken commits neither.
//!
//! `docs/jobs-and-leaders.md` says how to use them, also from SQL.

#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod by_statements;
mod decode;
mod in_tx;
mod name;
mod once;
mod operators;
mod outcome;
mod place;
pub(crate) mod rows;
#[cfg(feature = "schedule")]
mod schedule;
#[cfg(feature = "schedule")]
mod scheduled;
mod slot;
mod state;
mod steps;

pub use self::{
    once::Once,
    operators::JobSlot,
    outcome::JobOutcome,
    slot::Slot,
    state::{SlotState, Standing},
    steps::Job,
};
#[cfg(feature = "schedule")]
pub use self::{
    schedule::{InvalidSchedule, Schedule},
    scheduled::{Missed, Scheduled, ScheduledRuns},
};
