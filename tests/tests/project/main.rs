//! Checks of the project itself: its files, packages and documents.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod contract;
mod dependencies;
mod deploy;
mod guarantees;
mod links;
mod lua;
mod migrations;
mod operations;
mod runtime;
mod sources;
mod words;
