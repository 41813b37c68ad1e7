//! The lock service in MySQL and MariaDB, on real servers.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_language;
#[path = "../../../in_a_database/bank.rs"]
mod bank;
mod cases;
mod conformance;
#[path = "../../../in_a_database/crashes.rs"]
mod crashes;
mod dropped;
mod forget;
#[path = "../../../in_a_database/mod.rs"]
mod in_a_database;
mod late;
mod load;
mod one_database;
mod outages;
mod rights;
mod traps;
mod world;
