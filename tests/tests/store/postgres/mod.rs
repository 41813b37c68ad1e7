//! The fenced store on PostgreSQL: the cases of the rule that every database has to pass, and cases
//! that only Postgres can pass, or fail.

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
mod search_path;
pub(crate) mod server;
mod single;
mod standby;
mod starvation;
mod strays;
mod surroundings;
mod terminate;
mod transactions;
mod traps;
mod turnstile;
mod unknown;

use crate::{
    job_rule::{self, job_cases, job_pause_cases},
    rule::{self, everywhere::pause_cases, rule_cases, store_cases},
    servers::server_cases,
};
use server::PostgresServer;

rule_cases!(PostgresServer);
pause_cases!(PostgresServer);
job_cases!(PostgresServer);
job_pause_cases!(PostgresServer);
server_cases!(PostgresServer);
