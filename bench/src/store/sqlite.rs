//! The cost of the fence on SQLite.

use fenced_store::{FencedStore, SqliteFencedStore};
use sqlx::{
    Executor, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use super::load::ONE_CLIENT;
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::compare,
};

/// Begin, one update and commit, on the same connection. Every transaction is on disk when it is
/// committed, because the settings are those that we recommend.
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
    let store = FencedStore::new(pool.clone());
    store.migrate().await?;
    let grants = ONE_CLIENT.claim(&store).await?;
    let fenced = async || {
        let mut tx = store.begin(&grants[0]).await?;
        update(&mut tx).await?;
        tx.commit().await?;
        Ok::<_, BoxError>(())
    };
    let plain = async || {
        let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
        update(&mut tx).await?;
        tx.commit().await?;
        Ok::<_, BoxError>(())
    };
    let medians = compare(rounds, ONE_CLIENT.transactions, fenced, plain).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

async fn update(connection: &mut SqliteConnection) -> Result<(), BoxError> {
    let update = "UPDATE accounts SET balance = balance + 1 WHERE id = $1";
    sqlx::query(update).bind(0).execute(connection).await?;
    Ok(())
}
