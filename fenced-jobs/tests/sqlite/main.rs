//! Jobs on SQLite: the cases that every database has to pass, and the cases that need a file or a
//! clock.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod failed_jobs;
#[allow(dead_code, reason = "the tests of the store use the rest")]
#[path = "../../../fenced-store/tests/sqlite/file.rs"]
mod file;
#[path = "../rule/mod.rs"]
mod job_rule;
#[allow(dead_code, unused_imports, unused_macros, reason = "as above")]
#[path = "../../../fenced-store/tests/rule/mod.rs"]
mod rule;
mod schedule_clock;

use file::SqliteFile;
use job_rule::{job_cases, job_pause_cases};

job_cases!(SqliteFile);
job_pause_cases!(SqliteFile);
