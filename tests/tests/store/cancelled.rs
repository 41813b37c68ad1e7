//! A storm of cancellations over slow statements. A statement that a server is still busy with
//! keeps its place in the pool, so that no more sessions are opened than the pool has places.

use std::{
    sync::atomic::{AtomicI64, AtomicU32, Ordering},
    time::Duration,
};

use e2e::servers::{MySqlServer, OnMariaDb, OnMySql};
use fenced_store::{Dialect, FencedStore, FencedTx};
use futures_util::future::join_all;
use lock_core::Sequencer;
use sqlx::{
    AssertSqlSafe, MySql, Postgres,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
    postgres::PgPoolOptions,
};
use tokio::time::timeout;

use crate::{
    mysql::server::MySqlStore,
    postgres::server::PostgresServer,
    rule::{Harness, balance, claimed},
};

const PLACES: u32 = 3;

/// How many transactions are dropped in the middle of a slow statement.
const CANCELLED: u32 = 3 * PLACES;

/// A time limit. A statement that takes longer never ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Drops transactions while their statement is at work. Returns the greatest number of sessions
/// that were seen meanwhile.
#[expect(clippy::future_not_send, reason = "each test is one task")]
async fn storm<DB: Dialect>(
    store: &FencedStore<DB>,
    grant: &Sequencer,
    slow: impl AsyncFn(&mut FencedTx<DB>),
    sessions: impl AsyncFn() -> i64,
) -> i64 {
    let (cancelled, greatest) = (AtomicU32::new(0), AtomicI64::new(0));
    let is_over = || cancelled.load(Ordering::Relaxed) >= CANCELLED;
    let client = async || {
        while !is_over() {
            // This wait is not cut short, because sqlx would drop a connection that it is just
            // opening.
            let mut tx = store.begin(grant).await.unwrap();
            let at_work = timeout(Duration::from_millis(100), slow(&mut tx)).await;
            assert!(at_work.is_err(), "a slow statement is not finished");
            drop(tx);
            cancelled.fetch_add(1, Ordering::Relaxed);
        }
    };
    let observer = async {
        while !is_over() {
            greatest.fetch_max(sessions().await, Ordering::Relaxed);
        }
    };
    let clients = join_all((0..2 * PLACES).map(|_| client()));
    let storm = async { tokio::join!(clients, observer) };
    timeout(PATIENCE, storm).await.expect("places get free");
    greatest.into_inner()
}

/// The pool goes on, and nothing of the dropped transactions is stored.
async fn goes_on<H: Harness>(world: &H, store: &FencedStore<H::Db>, grant: &Sequencer) {
    let mut tx = store.begin(grant).await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(world).await, 101);
}

/// In this test the server answers in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_cancellations_opens_no_more_sessions_than_the_pool_has_places() {
    let (world, grant) = claimed::<PostgresServer>().await;
    let pool = PgPoolOptions::new().max_connections(PLACES);
    let pool = pool.connect_with(world.options().application_name("storm"));
    let store = FencedStore::new(pool.await.unwrap());
    let slow = async |tx: &mut FencedTx<Postgres>| {
        PostgresServer::add(tx, 1000).await.unwrap();
        let slow = sqlx::query("SELECT pg_sleep(2.5)").execute(&mut **tx);
        slow.await.unwrap();
    };
    let sessions = async || -> i64 {
        let sessions = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND application_name = 'storm'";
        let sessions = sqlx::query_scalar(sessions).fetch_one(world.store().pool());
        sessions.await.unwrap()
    };
    let greatest = storm(&store, &grant, slow, sessions).await;
    assert_eq!(greatest, i64::from(PLACES));
    goes_on(&world, &store, &grant).await;
}

/// The server would go on with statements whose clients are gone. So one more session ends their
/// sessions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_over_statements_without_end_opens_one_session_more_to_end_the_others() {
    tokio::join!(
        storm_over_sleeps::<OnMariaDb>(),
        storm_over_sleeps::<OnMySql>()
    );
}

async fn storm_over_sleeps<S: MySqlServer>() {
    let (world, grant) = claimed::<MySqlStore<S>>().await;
    let users = world.store_of_user("").await;
    let options: MySqlConnectOptions = users.pool().connect_options().as_ref().clone();
    users.pool().close().await;
    let user = options.get_username().to_owned();
    let pool = MySqlPoolOptions::new().max_connections(PLACES);
    let store = FencedStore::new(pool.connect_with(options).await.unwrap());
    let slow = async |tx: &mut FencedTx<MySql>| {
        let slow = sqlx::query("SELECT SLEEP(600)").execute(&mut **tx);
        slow.await.unwrap();
    };
    let sessions = async || -> i64 {
        let sessions = format!("SELECT COUNT(*) FROM {} WHERE user = ?", S::SESSIONS);
        let sessions = sqlx::query_scalar(AssertSqlSafe(sessions)).bind(&user);
        sessions.fetch_one(world.store().pool()).await.unwrap()
    };
    let greatest = storm(&store, &grant, slow, sessions).await;
    // The server forgets a session a moment after it has ended.
    let few = i64::from(PLACES)..i64::from(CANCELLED);
    assert!(few.contains(&greatest), "{greatest}");
    goes_on(&world, &store, &grant).await;
}
