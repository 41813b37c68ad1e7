//! A stale and a new holder take their steps in every possible order.
//!
//! Each of the two takes four steps: it begins, reads, inserts a row of its own and commits. The
//! new holder claims before it begins, as users do. The rows differ, so only the fence can
//! distinguish the two. In no order may the stale holder commit after the new holder, or may the
//! new holder commit without having seen a committed row of the stale holder.
//!
//! The control goes through the same orders with a plain SELECT as its check, and both faults have
//! to happen.
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
