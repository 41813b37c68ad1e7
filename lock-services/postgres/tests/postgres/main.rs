//! The lock service in PostgreSQL: a real server, directly and behind PgBouncer.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conformance;
mod world;
