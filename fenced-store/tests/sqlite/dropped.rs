//! Futures and transactions that are dropped. Each time the pool has one connection, so its next
//! user finds everything that was left behind.

use std::time::Duration;

use fenced_store::{FencedStore, SqliteFencedStore};
use futures_util::FutureExt;
use lock_core::Sequencer;
use sqlx::{
    Connection, Executor, SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};
use tokio::time::timeout;

use crate::{
    file::SqliteFile,
    rule::{Harness, at_every_await, balance, claimed, grant},
};

async fn with_one_connection() -> (SqliteFile, SqliteFencedStore, Sequencer) {
    let (world, grant) = claimed::<SqliteFile>().await;
    let store = FencedStore::new(world.pool_of_one().await);
    (world, store, grant)
}

/// A write through the pool is stored at once: its connection is not inside a transaction.
async fn add_unfenced(pool: &SqlitePool) {
    SqliteFile::add(&mut pool.acquire().await.unwrap(), 1)
        .await
        .unwrap();
}

async fn add_fenced(store: &SqliteFencedStore, grant: &Sequencer) {
    let mut tx = store.begin(grant).await.unwrap();
    SqliteFile::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
}

async fn conflict(connection: &mut sqlx::SqliteConnection) {
    let conflict = "INSERT OR ROLLBACK INTO accounts VALUES (42, 0)";
    assert!(connection.execute(conflict).await.is_err());
}

#[tokio::test]
async fn after_a_rollback_inside_the_pool_goes_on() {
    let (world, store, grant) = with_one_connection().await;
    for _ in 0..3 {
        let mut tx = store.begin(&grant).await.unwrap();
        conflict(&mut tx).await;
        drop(tx);
        add_fenced(&store, &grant).await;
        let mut tx = store.begin(&grant).await.unwrap();
        conflict(&mut tx).await;
        tx.rollback().await.unwrap_err();
        store.claim(&grant).await.unwrap();
        add_fenced(&store, &grant).await;
        let mut tx = store.begin(&grant).await.unwrap();
        conflict(&mut tx).await;
        drop(tx);
        store.migrate().await.unwrap();
        add_unfenced(store.pool()).await;
    }
    assert_eq!(balance(&world).await, 109);
}

/// The documentation advises against a savepoint of sqlx. SQLite refuses it as a second `BEGIN`,
/// and nothing is lost, even if its future is dropped.
#[tokio::test]
async fn a_savepoint_of_sqlx_is_refused_and_harmless() {
    let (world, store, grant) = with_one_connection().await;
    at_every_await(async |at| {
        let before = balance(&world).await;
        let mut tx = store.begin(&grant).await.unwrap();
        SqliteFile::add(&mut tx, 1).await.unwrap();
        let finished = at.poll(Connection::begin(&mut *tx)).await.is_some();
        SqliteFile::add(&mut tx, 1).await.unwrap();
        tx.commit().await.unwrap();
        add_unfenced(store.pool()).await;
        assert_eq!(balance(&world).await, before + 3);
        finished
    })
    .await;
    let mut tx = store.begin(&grant).await.unwrap();
    Connection::begin(&mut *tx).await.unwrap_err();
}

const SLOW: &str = "WITH RECURSIVE number (n) AS \
    (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 200000) \
    SELECT count(*) FROM number";

/// The rollback comes last, behind more messages than the thread of the connection takes at a time.
#[tokio::test]
async fn behind_dropped_statements_a_dropped_transaction_is_rolled_back() {
    let (world, _, grant) = with_one_connection().await;
    let options = world.store().pool().connect_options();
    let options = SqliteConnectOptions::clone(&options).command_buffer_size(1);
    let pool = SqlitePoolOptions::new().max_connections(1);
    let store = FencedStore::new(pool.connect_with(options).await.unwrap());
    for _ in 0..5 {
        let mut tx = store.begin(&grant).await.unwrap();
        SqliteFile::add(&mut tx, 1).await.unwrap();
        for _ in 0..3 {
            assert!(tx.execute(SLOW).now_or_never().is_none());
        }
        drop(tx);
        // Inside a transaction it would be refused.
        store.pool().execute("BEGIN; ROLLBACK").await.unwrap();
    }
    assert_eq!(balance(&world).await, 100);
}

/// When the other writer is gone, SQLite still executes a begin that was cancelled.
#[tokio::test]
async fn begin_that_is_cancelled_while_it_waits_leaves_the_file_free() {
    let (world, store, grant) = with_one_connection().await;
    for _ in 0..3 {
        let other = world.store().begin(&grant).await.unwrap();
        let waiting = store.begin(&grant).into_future();
        timeout(Duration::from_millis(50), waiting)
            .await
            .unwrap_err();
        other.rollback().await.unwrap();
        add_unfenced(store.pool()).await;
        add_fenced(&store, &grant).await;
    }
    assert_eq!(balance(&world).await, 106);
}

/// The data would be lost with the connection, so the connection is never closed.
#[tokio::test]
async fn a_database_in_memory_stays_whatever_is_dropped() {
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None);
    let store = SqliteFencedStore::new(pool.connect("sqlite::memory:").await.unwrap());
    store.migrate().await.unwrap();
    let accounts = "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER);
                    INSERT INTO accounts VALUES (42, 100)";
    store.pool().execute(accounts).await.unwrap();
    let grant = grant("account:42", 33);
    store.claim(&grant).await.unwrap();
    for _ in 0..3 {
        let mut tx = store.begin(&grant).await.unwrap();
        SqliteFile::add(&mut tx, 1000).await.unwrap();
        assert!(tx.execute(SLOW).now_or_never().is_none());
        drop(tx);
        store.pool().execute("BEGIN").await.unwrap();
        add_fenced(&store, &grant).await;
        drop(store.pool().begin().await.unwrap());
        store.claim(&grant).await.unwrap();
    }
    let mut connection = store.pool().acquire().await.unwrap();
    assert_eq!(SqliteFile::balance(&mut connection).await, 103);
}

#[test]
fn dropped_outside_of_its_runtime_it_is_rolled_back() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (world, store, grant) = runtime.block_on(with_one_connection());
    let tx = runtime.block_on(async {
        let mut tx = store.begin(&grant).await.unwrap();
        SqliteFile::add(&mut tx, 1000).await.unwrap();
        tx
    });
    drop(tx);
    runtime.block_on(add_fenced(&store, &grant));
    assert_eq!(runtime.block_on(balance(&world)), 101);
    // No runtime is left that could roll the transaction back. The end of the last connection to
    // the file does that.
    let tx = runtime.block_on(async { store.begin(&grant).await.unwrap() });
    drop(runtime);
    drop(tx);
}
