//! Redlock on real servers, and what becomes of its tokens when nodes, clocks and clients fail.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod clocks;
mod completing;
mod dropped;
mod losses;
mod naive;
mod operating;
mod outages;
mod provisioning;
mod restarts;
mod scripts;
mod slowest;
mod stress;
mod taking_in;
mod world;
