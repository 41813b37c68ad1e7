//! The cost of the fence on SQLite.

use fenced_store::{FencedStore, SqliteFencedStore};
use sqlx::{
    Executor,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use super::{
    load::ONE_CLIENT,
    transactions::{Statements, fenced_vs_plain},
};
use crate::figure::{BoxError, Measured};

/// Every transaction is on disk when it is committed: these are the settings that we recommend.
pub(super) async fn tx_vs_plain(rounds: u32) -> Result<Measured, BoxError> {
    let directory = tempfile::tempdir()?;
    let file = SqliteConnectOptions::new()
        .filename(directory.path().join("bench.db"))
        .create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(1);
    let pool = pool
        .connect_with(SqliteFencedStore::recommended(file))
        .await?;
    pool.execute(
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
         INSERT INTO accounts VALUES (0, 0)",
    )
    .await?;
    let store = FencedStore::new(pool);
    store.migrate().await?;
    let statements = Statements {
        begin: "BEGIN IMMEDIATE",
        update: "UPDATE accounts SET balance = balance + 1 WHERE id = $1",
    };
    fenced_vs_plain(store, statements, ONE_CLIENT, rounds).await
}
