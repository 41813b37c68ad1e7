#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod jobs;
mod name;
mod once;
mod operator;
mod outcome;
mod place;
mod run_slot;
#[cfg(feature = "schedule")]
mod schedule;
#[cfg(feature = "schedule")]
mod scheduled;
mod sealed;
mod slot;
mod slots;
mod steps;

#[doc(inline)]
pub use fenced_store::jobs::{SlotState, Standing};

pub use self::{
    jobs::Jobs,
    once::Once,
    outcome::JobOutcome,
    run_slot::RunSlot,
    slot::Slot,
    slots::{JobSlot, JobSlots},
    steps::Job,
};
#[cfg(feature = "schedule")]
pub use self::{
    schedule::{InvalidSchedule, Schedule},
    scheduled::{Missed, Scheduled, ScheduledRuns},
};
