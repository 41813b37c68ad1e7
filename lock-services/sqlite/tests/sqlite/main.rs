//! The lock service in an SQLite file.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod any_language;
mod cases;
mod conformance;
mod dropped;
mod forget;
#[path = "../../../in_a_database/mod.rs"]
mod in_a_database;
mod interrupted_write;
mod one_file;
mod together;
mod unusable;
mod world;
