//! Runs the shipped clients of locks in one thread: time, chance, faults and the order of tasks
//! come from a seed, so that each run can be repeated.
#![forbid(unsafe_code)]

pub mod service;
