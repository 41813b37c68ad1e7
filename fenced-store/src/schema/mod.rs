//! The parts of a database that a store creates: its tables, and the triggers of protected tables.
//!
//! `migrations/` brings the tables up to date. `readiness.rs` checks a database before its first
//! use, and `not_ready.rs` lists what can be wrong with it. `protect.rs` protects a table of the
//! application, which a [`Protection`] describes (`protection.rs`), by triggers (`triggers.rs`).

pub(crate) mod migrations;
mod not_ready;
mod protect;
pub(crate) mod protection;
pub(crate) mod readiness;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) mod triggers;

pub use self::{
    not_ready::{NotReady, Rights},
    protection::Protection,
};
