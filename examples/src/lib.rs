//! The code that several of the programs share.

pub mod bank;
