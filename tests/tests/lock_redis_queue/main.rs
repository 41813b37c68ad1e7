//! The fair line on a real server: who is granted what when clients die, give up, or are slow.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attempts;
mod ended;
mod handing_on;
mod limits;
mod order;
mod outages;
mod short_ways;
mod world;
