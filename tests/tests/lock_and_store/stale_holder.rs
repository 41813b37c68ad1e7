//! The main claim of the project, with real processes that are really stopped: a holder that was
//! paused past its lease cannot write. The control: without fencing it can write, and loses an
//! update.

use e2e::{
    process::Process,
    servers::{PostgresDatabase, apart, etcd, postgres_database, redis, zookeeper},
};
use fenced_store::{PgFencedStore, SqliteFencedStore};
use serde::Deserialize;
use sqlx::{PgPool, SqlitePool, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

const BALANCE: i64 = 100;
const FIRST_ADDS: i64 = 10;
const SECOND_ADDS: i64 = 50;

#[derive(Deserialize)]
struct Read {
    token: u64,
    read: i64,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Write {
    Written(i64),
    StaleBelow(u64),
}

/// A database with one account, `BALANCE` on it, and the tables of the fenced store.
struct Bank {
    url: String,
    pool: Pool,
}

/// The pool, and with it the folder of the database, which is deleted when the bank is dropped.
#[expect(dead_code, reason = "kept for its drop")]
enum Pool {
    Postgres(PgPool, Box<PostgresDatabase>),
    Sqlite(SqlitePool, TempDir),
}

const ACCOUNT: &str = "CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL); \
                       INSERT INTO account VALUES (1, 100)";

impl Bank {
    async fn in_postgres() -> Self {
        let database = postgres_database().await;
        let pool = PgPool::connect(database.url()).await.unwrap();
        sqlx::raw_sql(ACCOUNT).execute(&pool).await.unwrap();
        PgFencedStore::new(pool.clone()).migrate().await.unwrap();
        Self {
            url: database.url().to_owned(),
            pool: Pool::Postgres(pool, Box::new(database)),
        }
    }

    async fn in_sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("bank.db");
        let options = SqliteConnectOptions::new()
            .filename(&file)
            .create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        sqlx::raw_sql(ACCOUNT).execute(&pool).await.unwrap();
        SqliteFencedStore::new(pool.clone())
            .migrate()
            .await
            .unwrap();
        Self {
            url: format!("sqlite:{}", file.display()),
            pool: Pool::Sqlite(pool, directory),
        }
    }

    async fn balance(&self) -> i64 {
        const READ: &str = "SELECT balance FROM account WHERE id = 1";
        match &self.pool {
            Pool::Postgres(pool, _) => sqlx::query_scalar(READ).fetch_one(pool).await.unwrap(),
            Pool::Sqlite(pool, _) => sqlx::query_scalar(READ).fetch_one(pool).await.unwrap(),
        }
    }
}

struct Outcome {
    first: Write,
    second: Write,
    tokens: [u64; 2],
    balance: i64,
}

/// Worker 1 acquires and reads, and is stopped until its lease has run out. Worker 2 acquires,
/// reads and writes. Worker 1 goes on as if nothing had happened, and writes.
async fn pause(bank: &Bank, lock: &str, mode: &str) -> Outcome {
    let lock = apart(lock);
    let start = |add: i64| {
        let add = add.to_string();
        let what = [
            "section", "--store", &bank.url, "--mode", mode, "--add", &add,
        ];
        let lock = ["--lock", &lock, "--resource", "r", "--ttl-ms", "400"];
        Process::spawn("e2e-worker", what.into_iter().chain(lock))
    };
    let mut first = start(FIRST_ADDS);
    let first_read: Read = first.event().await;
    first.pause().await;
    // The worker gets its next order while it is stopped, so it writes at the moment when it wakes
    // up.
    first.send(&"write").await;

    let mut second = start(SECOND_ADDS);
    // The acquire of worker 2 waits inside the lock service until the lease of the stopped worker
    // runs out.
    let second_read: Read = second.event().await;
    assert_eq!((first_read.read, second_read.read), (BALANCE, BALANCE));
    second.send(&"write").await;
    let second_write = second.event().await;
    assert!(second.finish().await.success());

    first.resume();
    let first_write = first.event().await;
    assert!(first.finish().await.success());
    Outcome {
        first: first_write,
        second: second_write,
        tokens: [first_read.token, second_read.token],
        balance: bank.balance().await,
    }
}

/// The control: if this test loses no update, the other test proves nothing.
async fn unfenced_write_of_a_stale_holder_loses_an_update(bank: &Bank, lock: &str) {
    let control = pause(bank, lock, "unfenced").await;
    assert_eq!(control.second, Write::Written(BALANCE + SECOND_ADDS));
    assert_eq!(control.first, Write::Written(BALANCE + FIRST_ADDS));
    assert_eq!(
        control.balance,
        BALANCE + FIRST_ADDS,
        "worker 2's update should have been lost"
    );
}

async fn stale_holder_cannot_write(bank: &Bank, lock: &str) {
    let fenced = pause(bank, lock, "fenced").await;
    let [first, second] = fenced.tokens;
    assert!(first < second, "{first} and {second}");
    assert_eq!(fenced.second, Write::Written(BALANCE + SECOND_ADDS));
    assert_eq!(fenced.first, Write::StaleBelow(second));
    assert_eq!(fenced.balance, BALANCE + SECOND_ADDS);
}

#[tokio::test]
async fn stale_holder_cannot_write_to_postgres() {
    let lock = redis().await.url();
    unfenced_write_of_a_stale_holder_loses_an_update(&Bank::in_postgres().await, lock).await;
    stale_holder_cannot_write(&Bank::in_postgres().await, lock).await;
}

#[tokio::test]
async fn stale_holder_cannot_write_to_sqlite() {
    let lock = redis().await.url();
    unfenced_write_of_a_stale_holder_loses_an_update(&Bank::in_sqlite().await, lock).await;
    stale_holder_cannot_write(&Bank::in_sqlite().await, lock).await;
}

#[tokio::test]
async fn stale_holder_by_zookeeper_cannot_write() {
    let lock = &zookeeper().await.url();
    unfenced_write_of_a_stale_holder_loses_an_update(&Bank::in_sqlite().await, lock).await;
    stale_holder_cannot_write(&Bank::in_sqlite().await, lock).await;
}

/// Lock service and store are one database: no other server runs.
#[tokio::test]
async fn stale_holder_by_postgres_cannot_write_to_postgres() {
    let bank = Bank::in_postgres().await;
    unfenced_write_of_a_stale_holder_loses_an_update(&bank, &bank.url).await;
    let bank = Bank::in_postgres().await;
    stale_holder_cannot_write(&bank, &bank.url).await;
}

#[tokio::test]
async fn stale_holder_by_etcd_cannot_write() {
    let lock = &etcd().await.url();
    unfenced_write_of_a_stale_holder_loses_an_update(&Bank::in_sqlite().await, lock).await;
    stale_holder_cannot_write(&Bank::in_sqlite().await, lock).await;
}
