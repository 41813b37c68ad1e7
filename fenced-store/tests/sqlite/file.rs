//! A fenced store in a file, as in production.

use std::{path::Path, time::Duration};

use fenced_store::{Executed, FenceError, FencedStore, SqliteFencedStore};
use lock_core::{ResourceName, Sequencer};
use sqlx::{
    AssertSqlSafe, Executor, Sqlite, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tempfile::TempDir;

use crate::rule::{Deed, Harness, SqlHarness, line_of, migrated};

pub(crate) struct SqliteFile {
    store: SqliteFencedStore,
    options: SqliteConnectOptions,
    /// Removes the file when the test is over.
    directory: TempDir,
}

impl SqliteFile {
    /// The folder of the file.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A pool of one connection: its next user finds everything that the user before left behind.
    pub(crate) async fn pool_of_one(&self) -> SqlitePool {
        let pool = SqlitePoolOptions::new().max_connections(1);
        pool.connect_with(self.options.clone()).await.unwrap()
    }
}

impl Harness for SqliteFile {
    type Db = Sqlite;

    async fn fresh() -> Self {
        migrated().await
    }

    fn store(&self) -> &SqliteFencedStore {
        &self.store
    }

    async fn impatient(&self) -> SqliteFencedStore {
        let options = self
            .options
            .clone()
            .busy_timeout(Duration::from_millis(100));
        FencedStore::new(
            SqlitePoolOptions::new()
                .connect_with(options)
                .await
                .unwrap(),
        )
    }

    async fn add(connection: &mut SqliteConnection, amount: i64) -> Result<(), FenceError> {
        sqlx::query("UPDATE accounts SET balance = balance + $1 WHERE id = 42")
            .bind(amount)
            .execute(connection)
            .await?;
        Ok(())
    }

    async fn balance(connection: &mut SqliteConnection) -> i64 {
        sqlx::query_scalar("SELECT balance FROM accounts WHERE id = 42")
            .fetch_one(connection)
            .await
            .unwrap()
    }

    async fn add_unfenced(store: &SqliteFencedStore, amount: i64) -> Result<(), FenceError> {
        Self::add_by_itself(&mut *store.pool().acquire().await?, amount).await
    }
}

impl SqlHarness for SqliteFile {
    const BOOKS: &'static str = "_fenced_migrations";

    async fn unmigrated() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = SqliteConnectOptions::new()
            .filename(directory.path().join("store.db"))
            .create_if_missing(true);
        let options = SqliteFencedStore::recommended(file);
        let pool = SqlitePoolOptions::new()
            .connect_with(options.clone())
            .await
            .unwrap();
        pool.execute(
            "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
             INSERT INTO accounts VALUES (42, 100)",
        )
        .await
        .unwrap();
        Self {
            store: FencedStore::new(pool),
            options,
            directory,
        }
    }

    async fn store_of_one(&self) -> SqliteFencedStore {
        FencedStore::new(self.pool_of_one().await)
    }

    async fn execute(
        connection: &mut SqliteConnection,
        statement: &str,
    ) -> Result<u64, sqlx::Error> {
        let statement = sqlx::raw_sql(AssertSqlSafe(statement));
        Ok(connection.execute(statement).await?.rows_affected())
    }

    async fn add_at_once(
        store: &SqliteFencedStore,
        grant: &Sequencer,
        account: i64,
        amount: i64,
    ) -> Result<Executed, FenceError> {
        let add = sqlx::query("UPDATE accounts SET balance = balance + $2 WHERE id = $1");
        store
            .begin(grant)
            .execute(add.bind(account).bind(amount))
            .await
    }

    async fn dump(&self) -> String {
        let issuers: Vec<(i64, String)> = sqlx::query_as("SELECT * FROM fenced_lock_service")
            .fetch_all(self.store.pool())
            .await
            .unwrap();
        let marks: Vec<(String, i64, String, String, String)> =
            sqlx::query_as("SELECT * FROM fenced_high_water_mark")
                .fetch_all(self.store.pool())
                .await
                .unwrap();
        format!("{issuers:?} {marks:?}")
    }

    async fn administration(&self) -> Vec<String> {
        let deeds: Vec<Deed> = sqlx::query_as(
            "SELECT action, resource, from_token, to_token, from_issuer, to_issuer, reason
             FROM fenced_admin_log ORDER BY id",
        )
        .fetch_all(self.store.pool())
        .await
        .unwrap();
        deeds.into_iter().map(line_of).collect()
    }

    async fn triggers(&self) -> Vec<String> {
        // The table of marks has a trigger for the floor, too, which protects no table of an
        // application.
        let of_tables = "SELECT sql FROM sqlite_schema
            WHERE type = 'trigger' AND name <> 'fenced_above_floor' ORDER BY name";
        sqlx::query_scalar(of_tables)
            .fetch_all(self.store.pool())
            .await
            .unwrap()
    }

    async fn delete_mark(&self, resource: &ResourceName) {
        sqlx::query("DELETE FROM fenced_high_water_mark WHERE resource = $1")
            .bind(resource.as_str())
            .execute(self.store.pool())
            .await
            .unwrap();
    }
}
