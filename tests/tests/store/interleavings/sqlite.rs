//! On SQLite, with each of its journals.

use std::time::Duration;

use fenced_store::{FencedStore, SqliteFencedStore};
use sqlx::{
    AssertSqlSafe, Executor, Row, Sqlite, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tempfile::TempDir;

use crate::interleavings::{
    holder::Check,
    order::Who,
    tally::{self, Table},
    world::{NaiveBegin, World},
};

pub(crate) struct OnSqlite {
    stores: [SqliteFencedStore; 2],
    _directory: TempDir,
}

impl OnSqlite {
    /// How long a transaction waits for another one that is in its way.
    pub(crate) async fn new(journal: SqliteJournalMode, patience: Duration) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(directory.path().join("journal.db"))
            .create_if_missing(true)
            .journal_mode(journal)
            // No data of this test has to outlive the machine.
            .synchronous(SqliteSynchronous::Off)
            .busy_timeout(patience);
        let pool = || SqlitePool::connect_with(options.clone());
        let [stale, new] = [pool().await.unwrap(), pool().await.unwrap()];
        stale
            .execute("CREATE TABLE journal (run INTEGER, who INTEGER)")
            .await
            .unwrap();
        let stores = [stale, new].map(FencedStore::new);
        stores[0].migrate().await.unwrap();
        Self {
            stores,
            _directory: directory,
        }
    }
}

impl World for OnSqlite {
    type Db = Sqlite;

    /// A transaction that has read an old snapshot is not allowed to write. So the naive holder
    /// reads first, and begins its transaction then.
    const NAIVE_BEGIN: NaiveBegin = NaiveBegin::AtTheWrite("BEGIN IMMEDIATE");
    const MARKS: &str = "fenced_high_water_mark";

    fn store(&self, who: Who) -> &SqliteFencedStore {
        &self.stores[who as usize]
    }

    async fn until_blocked(&self, _: Who) {
        std::future::pending().await
    }

    async fn execute(connection: &mut SqliteConnection, sql: String) -> Result<(), sqlx::Error> {
        connection.execute(AssertSqlSafe(sql)).await.map(drop)
    }

    async fn number(connection: &mut SqliteConnection, sql: String) -> Result<i64, sqlx::Error> {
        // Each statement has another text. If these were prepared, they would push others out of
        // the connection's memory.
        let number = connection.fetch_one(sqlx::raw_sql(AssertSqlSafe(sql)));
        number.await?.try_get(0)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_order_of_steps_lets_a_stale_holder_through_on_sqlite() {
    let mut table = Table::default();
    let journals = [
        SqliteJournalMode::Wal,
        SqliteJournalMode::Delete,
        SqliteJournalMode::Truncate,
        SqliteJournalMode::Persist,
    ];
    for journal in journals {
        let world = OnSqlite::new(journal, Duration::ZERO).await;
        for check in [Check::Fenced, Check::PlainSelect] {
            let tally = tally::of_all_orders(&world, check).await;
            table.add(format!("{journal:?}"), check, tally);
        }
    }
    println!("{table}");
    table.assert_fenced_is_sound(journals.len());
    table.assert_control_fails(journals.len());
}
