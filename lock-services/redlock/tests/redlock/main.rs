//! Redlock on real servers, and its tokens when nodes, clocks and clients fail.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod alone;
mod clocks;
mod conformance;
mod dropped;
mod healing;
mod losses;
mod naive;
mod operating;
mod outages;
mod provisioning;
mod restarts;
mod scripts;
mod slowest;
mod taking_in;
mod world;
