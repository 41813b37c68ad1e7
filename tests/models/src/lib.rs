//! Models of the protocols that the lock services and the store speak, small enough to check every
//! reachable state. `docs/models.md` says what they leave out, and what they have found.
//!
//! A model is the intended protocol plus a list of flaws: the same protocol with one rule left out.
//! The protocol must hold and every flaw must be found; otherwise the model could not have found
//! anything.
#![forbid(unsafe_code)]

pub mod checking;
pub mod cohort;
pub mod handover;
pub mod lease_sql;
pub mod leases;
pub mod line;
pub mod notices;
pub mod queue;
pub mod redlock;
pub mod renewal;
mod set;
pub mod store;
mod unseen;
