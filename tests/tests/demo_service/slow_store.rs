//! A write that the store does not answer in time: the gateway answers that the outcome is unknown.

use std::time::Duration;

use e2e::servers::{PostgresDatabase, postgres_database};
use rustix::process::{Signal, kill_process};
use sqlx::{Connection, Executor, PgConnection, Postgres, Transaction};
use tokio::time::timeout;

use crate::gateway::{Answer, Gateway};

const FENCED: &str = "/v1/accounts/1";
const UNFENCED: &str = "/v1/unfenced/accounts/1";

/// Ends a test whose event does not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// A gateway over Postgres with a short time limit. Account 1 has a balance of 1.
async fn gateway(database: &PostgresDatabase, request_timeout: &str) -> Gateway {
    let arguments = [
        "--store",
        database.url(),
        "--request-timeout",
        request_timeout,
        "--unfenced",
    ];
    let gateway = Gateway::start_with(&arguments).await;
    gateway.write(UNFENCED, None, 1).await;
    gateway
}

async fn connect(database: &PostgresDatabase) -> PgConnection {
    PgConnection::connect(database.url()).await.unwrap()
}

/// A transaction that keeps every writer of account 1 waiting until it is committed.
async fn hold(connection: &mut PgConnection) -> Transaction<'_, Postgres> {
    let mut tx = connection.begin().await.unwrap();
    let lock = "SELECT FROM demo_accounts WHERE id = '1' FOR UPDATE";
    tx.execute(lock).await.unwrap();
    tx
}

fn assert_unknown(answer: &Answer) {
    answer.assert_problem(504, "outcome-unknown");
    assert_eq!(answer.body["outcome"], "unknown");
    assert!(!answer.headers.contains_key("fencing-accepted"));
    assert!(!answer.headers.contains_key("retry-after"));
}

/// Resolves when the write has come to its end.
async fn written(gateway: &Gateway, balance: i64) {
    let reading = async { while gateway.balance("1").await != Some(balance) {} };
    timeout(PATIENCE, reading).await.unwrap();
}

/// The write sleeps. If it waited for a lock, it would be refused before its time is over.
#[tokio::test]
async fn a_fenced_write_that_takes_too_long_is_unknown_and_comes_to_its_end() {
    const SLOW: &str = "
        CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_sleep(6); RETURN NEW; END $$;
        CREATE TRIGGER slow BEFORE UPDATE ON demo_accounts
            FOR EACH ROW WHEN (NEW.balance = 5) EXECUTE FUNCTION slow()";
    let database = postgres_database().await;
    let gateway = gateway(&database, "3s").await;
    let token = gateway.token("account:1", 60_000).await;
    let slow = sqlx::raw_sql(SLOW);
    connect(&database).await.execute(slow).await.unwrap();
    assert_unknown(&gateway.write(FENCED, Some(&token), 5).await);
    assert_eq!(gateway.balance("1").await, Some(1));

    written(&gateway, 5).await;
    let again = gateway.write(FENCED, Some(&token), 6).await;
    assert_eq!(again.status, 200, "{again:?}");
}

/// An unfenced write is one statement, which commits itself. So a session that ends during it may
/// have committed.
#[tokio::test]
async fn an_unfenced_write_whose_session_ends_is_unknown() {
    let database = postgres_database().await;
    let gateway = gateway(&database, "60s").await;
    let mut connection = connect(&database).await;
    let held = hold(&mut connection).await;
    let mut administrator = connect(&database).await;
    let end_the_waiting = async {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let mut ended = 0_i64;
        while ended == 0 {
            ended = sqlx::query_scalar(end)
                .fetch_one(&mut administrator)
                .await
                .unwrap();
        }
    };
    let write = gateway.write(UNFENCED, None, 5);
    let (answer, ()) = timeout(PATIENCE, async { tokio::join!(write, end_the_waiting) })
        .await
        .unwrap();
    assert_unknown(&answer);
    held.rollback().await.unwrap();
    assert_eq!(gateway.balance("1").await, Some(1));
}

/// The control: here the database reports that it refused the write.
#[tokio::test]
async fn a_write_that_the_database_refused_was_not_made() {
    let database = postgres_database().await;
    let gateway = gateway(&database, "60s").await;
    let mut connection = connect(&database).await;
    let held = hold(&mut connection).await;
    let refused = gateway.write(UNFENCED, None, 5).await;
    refused.assert_problem(503, "store-unavailable");
    held.rollback().await.unwrap();
    assert_eq!(gateway.balance("1").await, Some(1));
}

/// The gateway has no connections any more when it is asked to end, and the write goes on.
#[tokio::test]
async fn a_write_whose_client_is_gone_is_finished_before_the_end() {
    let database = postgres_database().await;
    let mut gateway = gateway(&database, "60s").await;
    let token = gateway.token("account:1", 60_000).await;
    let mut connection = connect(&database).await;
    let held = hold(&mut connection).await;
    let mut observer = connect(&database).await;
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let begun = async {
        let mut waits = 0_i64;
        while waits == 0 {
            let query = sqlx::query_scalar(waiting).fetch_one(&mut observer);
            waits = query.await.unwrap();
        }
    };
    tokio::select! {
        answer = gateway.write(FENCED, Some(&token), 5) => panic!("{answer:?}"),
        begun = timeout(PATIENCE, begun) => begun.unwrap(),
    }
    kill_process(gateway.process.id(), Signal::TERM).unwrap();
    let line = gateway.process.line().await.unwrap();
    assert_eq!(line, "terminated (SIGTERM): finishing requests under way");
    let ended = timeout(Duration::from_millis(500), gateway.process.finish()).await;
    assert!(ended.is_err(), "it does not wait for the write: {ended:?}");
    held.commit().await.unwrap();
    assert_eq!(gateway.process.finish().await.code(), Some(0));
    let balance = "SELECT balance FROM demo_accounts WHERE id = '1'";
    let balance: i64 = sqlx::query_scalar(balance)
        .fetch_one(&mut observer)
        .await
        .unwrap();
    assert_eq!(balance, 5, "it had begun");
}
