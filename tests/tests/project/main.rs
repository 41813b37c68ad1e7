//! What a program can check of the project itself: its files, packages and documents.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod circles;
mod contract;
mod dependencies;
mod guarantees;
mod lua;
mod migrations;
mod operations;
mod sources;
