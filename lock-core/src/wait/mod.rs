//! How a process waits: rules for the tasks of one process among each other, and rules for callers
//! that poll. Independent of any lock service.

mod cohort;
mod policy;

/// How many grants in a row may arrive after their own end before who asks is told that the ttl is
/// too short. The first may be a hiccup.
pub(crate) const LATE_GRANTS_MAX: u32 = 2;

pub use self::{
    cohort::Cohort,
    policy::{Jitter, Pauses, RetryPolicy},
};
