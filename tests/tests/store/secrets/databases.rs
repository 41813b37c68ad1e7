//! Checks on every database, with its most detailed log.

use std::time::Duration;

use e2e::servers::{
    DatabaseServer, MySqlServer, OnMariaDb, OnMySql, PgBouncer, PoolMode, postgres_database, until,
};
use fenced_store::{FencedStore, PgFencedStore, PgTxOptions};
use sqlx::{Executor, MySqlPool, PgPool, SqlitePool};

use crate::secrets::{
    trace,
    witness::Witness,
    workload::{self, KINDS, Statements},
};

/// The last statement that the database prints.
const THE_END: &str = "SELECT 'the end of the workload'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_reaches_a_log_or_an_error_of_postgres() {
    trace::listen();
    let server = DatabaseServer::postgres(&[
        "log_statement=all",
        "log_min_messages=debug1",
        "log_min_error_statement=debug1",
        "log_error_verbosity=verbose",
        "log_parameter_max_length_on_error=-1",
        "log_lock_waits=on",
        "deadlock_timeout=10ms",
    ])
    .await;
    let pool = PgPool::connect(server.url()).await.unwrap();
    pool.execute("CREATE TABLE journal (number integer)")
        .await
        .unwrap();
    let store = FencedStore::new(pool);
    let statements = Statements {
        delete_marks: "DELETE FROM fenced.high_water_mark",
        broken: "SELECT 1 / 0",
    };
    let mut witness = workload::run(&store, &statements).await;
    only_on_postgres(&store, &mut witness).await;
    store.pool().execute(THE_END).await.unwrap();
    until("the log is written", || async {
        server.log().contains(THE_END)
    })
    .await;
    let kinds = [
        &KINDS[..],
        &["Aborted", "Busy", "CommitUnknown", "Terminated"],
    ]
    .concat();
    witness.assert_silent(&kinds, &server.log(), &trace::so_far());
}

/// A transaction that failed, a transaction that waits in vain, and a transaction whose session
/// ends.
async fn only_on_postgres(store: &PgFencedStore, witness: &mut Witness) {
    const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE pid <> pg_backend_pid() AND state = 'idle in transaction'";
    let grant = witness.grant("redis", "account:44", 33);
    store.claim(&grant).await.unwrap();
    let mut tx = store.begin(&grant).await.unwrap();
    sqlx::query("SELECT 1 / 0")
        .execute(&mut *tx)
        .await
        .unwrap_err();
    witness.refused(tx.commit().await);

    let impatient = PgTxOptions::default()
        .lock_timeout(Some(Duration::from_millis(20)))
        .terminate_older(false);
    let impatient = store.clone().with_options(impatient);
    let tx = store.begin(&grant).await.unwrap();
    let newer = witness.grant("redis", "account:44", 34);
    witness.refused(impatient.claim(&newer).await);
    store.pool().execute(END).await.unwrap();
    witness.refused(tx.commit().await);

    let mut tx = store.begin(&grant).await.unwrap();
    store.pool().execute(END).await.unwrap();
    let ended = sqlx::query("SELECT 1").execute(&mut *tx).await;
    witness.refused(ended.map_err(Into::into));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_reaches_a_log_or_an_error_of_mariadb() {
    no_secret_reaches_the_general_log::<OnMariaDb>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_reaches_a_log_or_an_error_of_mysql() {
    no_secret_reaches_the_general_log::<OnMySql>().await;
}

async fn no_secret_reaches_the_general_log<S: MySqlServer>() {
    trace::listen();
    let server = S::start().await;
    let pool = MySqlPool::connect(server.url()).await.unwrap();
    pool.execute("SET GLOBAL log_output = 'TABLE'")
        .await
        .unwrap();
    pool.execute("SET GLOBAL general_log = ON").await.unwrap();
    pool.execute("CREATE DATABASE journal").await.unwrap();
    let url = server.url().replace("/mysql", "/journal");
    let store = FencedStore::new(MySqlPool::connect(&url).await.unwrap());
    store
        .pool()
        .execute("CREATE TABLE journal (number INT)")
        .await
        .unwrap();
    let statements = Statements {
        delete_marks: "DELETE FROM fenced_high_water_mark",
        broken: "SELECT no_such_column",
    };
    let witness = workload::run(&store, &statements).await;
    let log = "SELECT argument FROM mysql.general_log";
    let log: Vec<Vec<u8>> = sqlx::query_scalar(log).fetch_all(&pool).await.unwrap();
    let log = String::from_utf8_lossy(&log.join(&b'\n')).into_owned();
    let trace = trace::so_far();
    witness.assert_silent(&KINDS, &log, &trace);
    witness.assert_not_presented(&log, &trace);
}

/// SQLite has no log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_reaches_an_error_of_sqlite() {
    trace::listen();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("journal.db");
    let url = format!("sqlite:{}?mode=rwc", file.display());
    let store = FencedStore::new(SqlitePool::connect(&url).await.unwrap());
    store
        .pool()
        .execute("CREATE TABLE journal (number INTEGER)")
        .await
        .unwrap();
    let statements = Statements {
        delete_marks: "DELETE FROM fenced_high_water_mark",
        broken: "SELECT no_such_column",
    };
    let witness = workload::run(&store, &statements).await;
    let trace = trace::so_far();
    witness.assert_silent(&KINDS, "", &trace);
    witness.assert_not_presented("", &trace);
}

/// The lock service in the same database, with both protocols of Postgres. Behind a pooler it uses
/// the simple protocol, which has no parameters. The control: the driver's own events are heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_holder_of_a_lease_in_postgres_reaches_a_trace() {
    trace::listen();
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let store = FencedStore::new(pool.clone());
    store.migrate().await.unwrap();
    let pooler = PgBouncer::start(&database, PoolMode::Transaction).await;
    let mut holders = Vec::new();
    for url in [database.url(), &pooler.url(&database)] {
        let locks = palisade::connect(url).await.unwrap();
        let guard = locks.acquire("r").await.unwrap();
        holders.push(guard.sequencer().holder());
        guard.release().await.unwrap();
    }
    let one = palisade::open(store).await.unwrap();
    for _ in 0..2 {
        let guard = one.acquire("r").await.unwrap();
        holders.push(guard.sequencer().holder());
        let tx = guard.begin().await.unwrap();
        tx.commit_and_release(guard).await.unwrap();
    }
    pool.execute("SELECT 'heard in the trace'").await.unwrap();
    let trace = trace::so_far();
    assert!(trace.contains("heard in the trace"));
    for holder in holders {
        assert!(trace.contains(&holder.fingerprint()), "the control");
        assert!(!trace.contains(&holder.digest()));
    }
}
