//! The lock service in PostgreSQL: a real server, directly and behind PgBouncer.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_language;
mod bank;
mod clocks;
mod conformance;
mod crashed;
mod dropped;
mod few_sessions;
mod forget;
mod hanging;
mod late;
mod one_database;
mod outages;
mod pooled;
mod prefixes;
mod processes;
mod promoted;
mod quiet;
mod repeatable;
mod rights;
mod snapshots;
mod standby;
mod world;
