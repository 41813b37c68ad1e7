//! Jobs in memory: the cases that every store has to pass.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

#[path = "../rule/mod.rs"]
mod job_rule;
#[path = "../../../fenced-store/tests/memory/room.rs"]
mod room;
#[allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "the tests of the store use the rest"
)]
#[path = "../../../fenced-store/tests/rule/mod.rs"]
mod rule;

use job_rule::{job_cases, job_pause_cases};
use room::Room;

job_cases!(Room);
job_pause_cases!(Room);
