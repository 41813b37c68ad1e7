//! ZooKeeper: together with kazoo and Curator, with leaders that die, processes that stand still,
//! acquires that are dropped, and no servers at all.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cancelled;
mod conformance;
mod curator;
mod dropped;
mod elections;
mod floors;
mod kazoo;
mod load;
mod login;
mod lost;
mod outages;
mod peer;
mod renewals;
mod requests;
mod stopped;
mod world;
