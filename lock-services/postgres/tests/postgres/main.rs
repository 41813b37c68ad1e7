//! The lock service in PostgreSQL: a real server, directly and behind PgBouncer.
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
mod clocks;
mod conformance;
#[path = "../../../in_a_database/crashes.rs"]
mod crashes;
mod dropped;
mod few_sessions;
mod forget;
mod hanging;
#[path = "../../../in_a_database/mod.rs"]
mod in_a_database;
mod late;
mod one_database;
mod outages;
mod pooled;
mod prefixes;
mod promoted;
mod quiet;
mod repeatable;
mod rights;
mod snapshots;
mod standby;
mod world;
