//! The store in memory: the cases of the rule that use no SQL, and messages that are lost.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod forget;
mod room;
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "databases use the rest"
)]
#[path = "../rule/mod.rs"]
mod rule;
mod transactions;
mod wire;

use room::Room;
use rule::{everywhere::pause_cases, rule_cases, store_cases};

store_cases!(Room);
pause_cases!(Room);
