//! A database with the schema, and clients of it.

use std::sync::Arc;

use e2e::servers::{PostgresDatabase, postgres_database};
use fenced_store::PgFencedStore;
use lock_core::SystemClock;
use palisade_postgres::{PostgresBackend, PostgresOptions};
use sqlx::PgPool;

/// An empty database with the schema.
pub(crate) async fn database() -> PostgresDatabase {
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    PgFencedStore::new(pool.clone()).migrate().await.unwrap();
    pool.close().await;
    database
}

/// A client with these settings.
pub(crate) async fn connect(url: &str, options: PostgresOptions) -> PostgresBackend {
    let connected = PostgresBackend::connect(url, options, Arc::new(SystemClock)).await;
    connected.unwrap()
}
