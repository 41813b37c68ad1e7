//! `palisade run`: a command that is dead before its lease ends, whatever happens to our processes.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod between;
mod ends;
mod lock_service;
mod plain;
mod rounds;
mod slots;
mod support;
mod terminal;
