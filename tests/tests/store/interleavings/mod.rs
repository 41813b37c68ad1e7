//! A stale and a new holder, step by step, in every order that there is.
//!
//! Each of the two takes four steps: it begins, reads, inserts a row of its own and commits. The
//! new one claims before it begins, as its users do. The rows differ, so nothing but the fence can
//! tell the two apart. In no order may the stale one commit after the new one has, or the new one
//! commit without having seen what the stale one committed.
//!
//! The control goes through the same orders with a plain SELECT for a check, and has to do both.
#![allow(clippy::future_not_send, reason = "each test is one task")]

mod duplicates;
mod holder;
mod mysql;
mod order;
mod postgres;
mod runner;
mod sqlite;
mod tally;
mod world;
