//! How a process waits: rules for the tasks of one process among each other, and rules for callers
//! that poll. Independent of any lock service.

mod cohort;
mod policy;

pub use self::{
    cohort::Cohort,
    policy::{Jitter, Pauses, RetryPolicy},
};
