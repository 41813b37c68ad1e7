//! The lock service in MySQL and MariaDB, on real servers.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_language;
mod bank;
mod conformance;
mod crashed;
mod dropped;
mod forget;
mod late;
mod load;
mod one_database;
mod outages;
mod processes;
mod rights;
mod traps;
mod world;
