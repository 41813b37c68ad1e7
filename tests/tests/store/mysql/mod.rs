//! The fenced store on MariaDB: the cases of the rule that every database has to pass, and what
//! only MariaDB can do, or do wrong.

mod around;
mod client;
mod commits;
mod dropped;
mod ids;
mod older;
mod outages;
mod protect;
mod rights;
pub(crate) mod server;
mod strays;
mod traps;

use crate::{
    job_rule::{self, job_cases},
    rule::{self, rule_cases, store_cases},
    servers::server_cases,
};
use server::MariaDbServer;

rule_cases!(MariaDbServer);
job_cases!(MariaDbServer);
server_cases!(MariaDbServer);
