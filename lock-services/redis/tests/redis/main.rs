//! Redis as a lock service, on real servers: one, with sentinels, as a cluster.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alone;
mod clock;
mod conformance;
mod faults;
mod one_server;
mod processes;
mod queue;
mod topologies;
