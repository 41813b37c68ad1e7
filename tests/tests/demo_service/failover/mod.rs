//! Servers that fail over: a list of all that an endpoint can do which leads to another server for a
//! while, or for good. Each lock service and each store that has a server goes through all of it,
//! with the same clients: see [`Crew`](crew::Crew). SQLite and memory have no endpoint.
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

/// Tests that take an endpoint through all cases.
macro_rules! endpoints {
    ($($name:ident: $endpoint:ty),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                cases::all::<$endpoint>().await;
            }
        )*
    };
}

endpoints! {
    a_redis_that_fails_over_needs_no_restart: services::OneRedis,
    a_redlock_that_fails_over_needs_no_restart: services::Redlock,
    an_etcd_that_fails_over_needs_no_restart: services::OneEtcd,
    a_zookeeper_that_fails_over_needs_no_restart: services::OneZooKeeper,
    a_postgres_that_fails_over_needs_no_restart: databases::OnePostgres,
    a_mariadb_that_fails_over_needs_no_restart: databases::OneMySql<e2e::servers::OnMariaDb>,
    a_mysql_that_fails_over_needs_no_restart: databases::OneMySql<e2e::servers::OnMySql>,
}
