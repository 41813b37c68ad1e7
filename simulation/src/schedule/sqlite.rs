//! A database of SQLite.

use std::{path::Path, time::Duration};

use fenced_store::SqliteFencedStore;
use sqlx::{
    Connection, Row as _, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteRow, SqliteSynchronous},
};

use crate::judge::act::Row;

/// The way to a database in this folder. It is less durable than a database in production, because
/// no machine of a schedule loses its power.
pub(super) fn options(folder: &Path) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new()
        .filename(folder.join("store.db"))
        .create_if_missing(true);
    SqliteFencedStore::recommended(options)
        .synchronous(SqliteSynchronous::Off)
        .busy_timeout(Duration::from_millis(50))
}

/// Makes the database ready, with an empty ledger.
pub(super) async fn prepare(
    options: &SqliteConnectOptions,
) -> Result<(), fenced_store::FenceError> {
    let pool = SqlitePool::connect_with(options.clone()).await?;
    SqliteFencedStore::new(pool.clone()).migrate().await?;
    let ledger = "CREATE TABLE ledger (name TEXT PRIMARY KEY, data TEXT NOT NULL)";
    sqlx::query(ledger).execute(&pool).await?;
    pool.close().await;
    Ok(())
}

/// All rows.
pub(super) async fn rows(
    options: &SqliteConnectOptions,
) -> Result<Vec<(String, Row)>, sqlx::Error> {
    let mut connection = SqliteConnection::connect_with(options).await?;
    let rows = sqlx::query("SELECT name, data FROM ledger ORDER BY name");
    let rows = rows.fetch_all(&mut connection).await?;
    let row = |row: SqliteRow| {
        let data = serde_json::from_str(row.get(1));
        let data = data.map_err(|error| sqlx::Error::Decode(error.into()))?;
        Ok((row.get(0), data))
    };
    rows.into_iter().map(row).collect()
}
