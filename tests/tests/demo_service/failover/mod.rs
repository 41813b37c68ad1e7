//! Servers that fail over: a list of all that an endpoint can do which leads to another server
//! for a while, or for good. Each lock service and each store that has a server goes through all
//! of it, with the same clients: see [`Crew`](crew::Crew). SQLite and memory have no endpoint.
#![expect(
    clippy::future_not_send,
    reason = "a test is one task, and its members are others"
)]

mod books;
mod cases;
mod crew;
mod databases;
mod endpoint;
mod members;
mod replica;
mod services;

use e2e::servers::{OnMariaDb, OnMySql};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_fails_over_needs_no_restart() {
    cases::all::<services::OneRedis>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redlock_that_fails_over_needs_no_restart() {
    cases::all::<services::Redlock>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_fails_over_needs_no_restart() {
    cases::all::<services::OneEtcd>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zookeeper_that_fails_over_needs_no_restart() {
    cases::all::<services::OneZooKeeper>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_fails_over_needs_no_restart() {
    cases::all::<databases::OnePostgres>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mariadb_that_fails_over_needs_no_restart() {
    cases::all::<databases::OneMySql<OnMariaDb>>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mysql_that_fails_over_needs_no_restart() {
    cases::all::<databases::OneMySql<OnMySql>>().await;
}
