//! A store with accounts, and grants of one account.

use fenced_store::SqliteFencedStore;
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;

/// A store with accounts 42 and 43, whose balances are 0. The file is deleted with the folder.
pub(crate) async fn store() -> (SqliteFencedStore, TempDir) {
    let dir = TempDir::new().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(dir.path().join("accounts.db"))
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    for statement in [
        "CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER NOT NULL)",
        "INSERT INTO accounts VALUES ('account:42', 0), ('account:43', 0)",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    let store = SqliteFencedStore::new(pool);
    store.migrate().await.unwrap();
    (store, dir)
}

/// A grant of account 42 for a fresh holder.
pub(crate) fn sequencer(token: u64) -> Sequencer {
    Sequencer::new(
        Issuer::new("redis").unwrap(),
        ResourceName::new("account:42").unwrap(),
        FencingToken::new(token).unwrap(),
        Holder::random(),
    )
}
