//! The harness itself: servers, processes and networks that fail on demand.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod end_with_their_test;
mod proxy;
mod redis;
