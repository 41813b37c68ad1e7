//! Lock and store together, with real processes that are stopped by the operating system.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod every_service;
mod fenced_work;
mod handover;
mod killed_waiter;
mod protected_resource;
mod spawned;
mod stale_holder;
