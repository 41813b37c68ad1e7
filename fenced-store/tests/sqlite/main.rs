//! The fenced store on SQLite: the cases of the rule that every database has to pass, and cases
//! that only SQLite has.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod dropped;
mod file;
mod force;
mod forget;
mod hostile;
#[cfg(feature = "metrics")]
mod metrics;
mod not_committed;
mod protect;
mod protected;
mod rights;
#[path = "../rule/mod.rs"]
mod rule;
mod runtime;
mod traps;

use file::SqliteFile;
use rule::{everywhere::pause_cases, rule_cases, store_cases};

rule_cases!(SqliteFile);
pause_cases!(SqliteFile);
