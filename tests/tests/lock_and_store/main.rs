//! Lock and store together, and real processes that are really stopped.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod every_service;
mod fenced_work;
mod handover;
mod killed_waiter;
mod protected_resource;
mod spawned;
mod stale_holder;
