use palisade::store::{FencedStore, SqliteFencedStore};
use sqlx::{Sqlite, SqlitePool, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

pub(crate) const BALANCE: i64 = 100;

/// A database with two accounts. Writes to one are not checked, and writes to the other are fenced.
pub(crate) struct Bank {
    pub(crate) store: SqliteFencedStore,
    _directory: TempDir,
}

/// One of the accounts.
#[derive(Clone, Copy)]
pub(crate) enum Account {
    Unfenced = 1,
    Fenced = 2,
}

impl Bank {
    pub(crate) async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(directory.path().join("bank.db"))
            .create_if_missing(true);
        let options = SqliteFencedStore::recommended(options);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        let schema = "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL); \
                      INSERT INTO account VALUES (1, 100), (2, 100)";
        sqlx::raw_sql(schema).execute(&pool).await.unwrap();
        let store: FencedStore<Sqlite> = FencedStore::new(pool);
        store.migrate().await.unwrap();
        Self {
            store,
            _directory: directory,
        }
    }

    pub(crate) async fn balance(&self, account: Account) -> i64 {
        sqlx::query_scalar("SELECT balance FROM account WHERE id = $1")
            .bind(account as i64)
            .fetch_one(self.store.pool())
            .await
            .unwrap()
    }

    pub(crate) async fn set(
        &self,
        account: Account,
        balance: i64,
        executor: impl sqlx::SqliteExecutor<'_>,
    ) {
        sqlx::query("UPDATE account SET balance = $1 WHERE id = $2")
            .bind(balance)
            .bind(account as i64)
            .execute(executor)
            .await
            .unwrap();
    }
}
