//! The fenced store on real databases: the cases of the rule, the differences of the databases, and
//! their faults.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod alone;
mod cancelled;
mod faults;
mod fence_your_own_store;
mod interleavings;
#[path = "../../../fenced-jobs/tests/rule/mod.rs"]
mod job_rule;
mod mysql;
mod no_connection;
mod postgres;
#[path = "../../../fenced-store/tests/rule/mod.rs"]
mod rule;
mod secrets;
mod servers;
