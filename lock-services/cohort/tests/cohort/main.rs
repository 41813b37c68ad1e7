//! The cohort: as its user sees it, as a lock service among others, and over a real Redis server.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backend;
#[path = "../../../../lock-core/tests/user_side/bare.rs"]
mod bare;
mod conformance;
mod joining;
mod redis;
mod stress;
mod two_processes;
