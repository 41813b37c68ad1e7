//! Schedules of the shipped code, in one thread: a seed chooses every message, pause, crash and
//! order of tasks, so that the same seed repeats the same run.
#![forbid(unsafe_code)]

pub mod service;
pub mod world;
