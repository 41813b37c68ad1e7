//! A database with the schema, and clients of it.

use std::sync::Arc;

use e2e::servers::{PostgresDatabase, postgres_database};
use fenced_store::PgFencedStore;
use lock_core::{
    LockManager, ResourceName,
    backend::{ConnectOptions, TokioRuntime},
};
use palisade_postgres::PostgresBackend;
use sqlx::{AssertSqlSafe, PgPool};

/// An empty database with the schema.
pub(crate) async fn database() -> PostgresDatabase {
    let database = postgres_database().await;
    migrate(database.url()).await;
    database
}

/// Makes the schema.
pub(crate) async fn migrate(url: &str) {
    let pool = PgPool::connect(url).await.unwrap();
    PgFencedStore::new(pool.clone()).migrate().await.unwrap();
    pool.close().await;
}

/// A client.
pub(crate) async fn connect(to: impl Into<ConnectOptions>) -> PostgresBackend {
    let connected = PostgresBackend::connect(to, Arc::new(TokioRuntime)).await;
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
pub(crate) async fn count(pool: &PgPool, query: &str) -> i64 {
    let query = AssertSqlSafe(query.to_owned());
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}
