//! Redis behind a network and a machine that fail.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod connections;
mod delay;
mod dropped;
mod lost_answers;
mod pushes;
mod random;
mod storm;
mod world;
