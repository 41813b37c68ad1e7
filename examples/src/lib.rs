//! What several of the programs share.

pub mod bank;
