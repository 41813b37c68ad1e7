//! The fenced store on MariaDB: the cases of the rule that every database has to pass, and what
//! only MariaDB can do, or do wrong.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod client;
mod commits;
mod dropped;
mod older;
mod protect;
mod rights;
#[path = "../../../fenced-store/tests/rule/mod.rs"]
mod rule;
mod server;
mod strays;
mod traps;

use rule::rule_cases;
use server::MariaDbServer;

rule_cases!(MariaDbServer);
