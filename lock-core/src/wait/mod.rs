//! How a process waits: rules for its tasks among each other, and rules for those who look again
//! instead. Apart from any lock service.

mod cohort;
mod policy;

pub use self::{
    cohort::Cohort,
    policy::{Jitter, Pauses, RetryPolicy},
};
