//! The store rule: which grants may claim, and which may write.
//!
//! `decide.rs` is the rule, for the databases whose own functions cannot hold it; Postgres has it
//! in SQL (`migrations/postgres`). `marks.rs` reads the high-water marks with which the rule
//! compares a token, and `high_water.rs` shows a mark to the caller. `observer.rs` applies the rule
//! and refuses nothing.

mod decide;
mod high_water;
pub(crate) mod marks;
mod observer;

pub(crate) use self::decide::{Claim, Mark, Standing, check, claim, issuer};
pub use self::{
    high_water::HighWater,
    observer::{Observed, Observer},
};
