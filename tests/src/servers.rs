//! Real servers as child processes, each on a free loopback port with a directory of its own.
//!
//! They end with the test, even if its process is killed: see [`warden`](crate::warden).
//!
//! A server that is not installed fails the test; `scripts/test` installs missing ones. To test
//! against servers that are already running, set `PALISADE_TEST_REDIS_URL`,
//! `PALISADE_TEST_POSTGRES_URL` (a role that may create databases), `PALISADE_TEST_MARIADB_URL` and
//! `PALISADE_TEST_MYSQL_URL` (users with all rights). A [`Redis`] is always a separate server,
//! because a test that asks for a `Redis` is going to stop or kill it.

mod browser;
mod certificates;
mod cluster;
mod database;
mod database_server;
mod etcd;
mod mysql;
mod owned;
mod pgbouncer;
mod postgres;
mod redis;
mod redlock;
mod replicated;
mod replication;
mod rights;
mod sentinel;
mod zookeeper;

pub use self::{
    browser::{Browser, Colours, Screen},
    certificates::Certificates,
    cluster::RedisCluster,
    database::{Databases, TestDatabase},
    database_server::DatabaseServer,
    etcd::{Etcd, EtcdUser, etcd},
    mysql::{
        MARIADB_URL_VARIABLE, MYSQL_URL_VARIABLE, MySqlDatabase, MySqlServer, OnMariaDb, OnMySql,
        mariadb_database, mysql_database,
    },
    pgbouncer::{PgBouncer, PoolMode},
    postgres::{POSTGRES_URL_VARIABLE, PostgresDatabase, postgres_database},
    redis::{ClockOffset, REDIS_URL_VARIABLE, Redis, SharedRedis, redis},
    redlock::RedlockServers,
    replicated::Replicated,
    rights::documented_rights,
    sentinel::RedisWithSentinels,
    zookeeper::{ELECTION, ZooKeeper, zookeeper},
};

use std::io;

pub use crate::observer::until;
use crate::warden::{ServerKind, Warden};

/// The URL of a lock service with a prefix that no other test has.
pub fn apart(url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}prefix=t{:016x}", rand::random::<u64>())
}

/// Starts a server without blocking the threads of the runtime.
async fn start(kind: ServerKind, arguments: Vec<String>) -> Warden {
    blocking(move || Warden::start_with(kind, &arguments))
        .await
        .unwrap_or_else(|error| panic!("cannot start {}: {error}", kind.name()))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await?
}
