//! The fenced store on PostgreSQL: the cases of the rule that every database has to pass, and what
//! only Postgres can do, or do wrong.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod administration;
mod by_hand;
mod faults;
mod migrations;
mod paused;
mod pgbouncer;
mod protect;
mod psql;
mod rights;
mod roles;
#[path = "../../../fenced-store/tests/rule/mod.rs"]
mod rule;
mod search_path;
mod server;
mod single;
mod starvation;
mod strays;
mod surroundings;
mod terminate;
mod transactions;
mod traps;
mod turnstile;
mod unknown;

use rule::rule_cases;
use server::PostgresServer;

rule_cases!(PostgresServer);
