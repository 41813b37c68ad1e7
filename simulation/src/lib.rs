//! Schedules of the shipped code, in one thread: a seed chooses every message, pause, crash and
//! order of tasks, so that the same seed repeats the same run.
//!
//! A `plan` says what clients do and what goes wrong, a `schedule` runs it, and a `judge` compares
//! the events with the promises. The clients (`clients`) use the shipped code. Their surroundings
//! are made for the simulation: the `world` with its time and tasks, the lock `service` with its
//! network, the way to the `store` in memory, and a service over HTTP behind its `edge`.
#![forbid(unsafe_code)]

mod clients;
mod coverage;
mod edge;
mod history;
mod judge;
pub mod plan;
pub mod recording;
pub mod schedule;
pub mod service;
mod short;
pub mod shrink;
mod store;
mod totals;
pub mod world;

pub use self::{coverage::Coverage, judge::Broken, totals::Totals};
