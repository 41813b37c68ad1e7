//! The operations of a lock manager beyond acquiring and releasing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bare;
mod bare_conformance;
mod cleaning_up;
mod force;
mod options;
mod owner;
mod several;
mod world;
