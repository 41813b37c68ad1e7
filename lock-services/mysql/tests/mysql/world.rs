//! A database with the schema, and clients of it.

use std::sync::Arc;

use e2e::servers::{MySqlDatabase, MySqlServer, OnMariaDb};
use fenced_store::MySqlFencedStore;
use lock_core::{
    LockManager, ResourceName,
    backend::{ConnectOptions, TokioRuntime},
};
use palisade_mysql::MySqlBackend;
use sqlx::{AssertSqlSafe, MySqlPool};

/// An empty database with the schema, on MariaDB, for tests that do not depend on the server.
pub(crate) async fn database() -> MySqlDatabase {
    database_of::<OnMariaDb>().await
}

/// An empty database with the schema.
pub(crate) async fn database_of<S: MySqlServer>() -> MySqlDatabase {
    let database = S::database().await;
    migrate(database.url()).await;
    database
}

/// Makes the schema.
pub(crate) async fn migrate(url: &str) {
    let pool = MySqlPool::connect(url).await.unwrap();
    MySqlFencedStore::new(pool.clone()).migrate().await.unwrap();
    pool.close().await;
}

/// A client.
pub(crate) async fn connect(to: impl Into<ConnectOptions>) -> MySqlBackend {
    let connected = MySqlBackend::connect(to, Arc::new(TokioRuntime)).await;
    connected.unwrap()
}

/// A manager.
pub(crate) async fn manager(url: &str) -> LockManager {
    palisade::connect(url).await.unwrap()
}

pub(crate) fn named(name: &str) -> ResourceName {
    ResourceName::new(name).unwrap()
}

/// The result of a query without parameters.
pub(crate) async fn count(pool: &MySqlPool, query: &str) -> i64 {
    let query = AssertSqlSafe(query.to_owned());
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}

/// Runs these tests, which are generic over the server, on MariaDB and on MySQL.
macro_rules! on_each_server {
    ($($name:ident),+ $(,)?) => {
        mod on_mariadb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name::<e2e::servers::OnMariaDb>().await;
            })+
        }

        mod on_mysql {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name::<e2e::servers::OnMySql>().await;
            })+
        }
    };
}
pub(crate) use on_each_server;
