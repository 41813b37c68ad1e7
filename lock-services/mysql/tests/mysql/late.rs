//! Requests that come late, and the memory that refuses them.

use e2e::servers::{MySqlServer, until};
use lock_core::{
    ErrorKind, Holder, Issuer, Released, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, ConnectOptions, LockBackend as _, LockBackendExt, TokioRuntime,
    },
};
use palisade_mysql::MySqlBackend;
use sqlx::{
    AssertSqlSafe, Connection as _, Executor, MySqlConnection, MySqlPool, Row as _,
    mysql::MySqlPoolOptions,
};

use crate::world::{connect, count, database_of, manager, named, on_each_server};

const TTL: Ttl = Ttl::secs(60);

fn request() -> AcquireRequest {
    let attempt = AttemptRef::new(&TokioRuntime, named("r"), Holder::random());
    AcquireRequest::new(attempt, TTL)
}

/// A proxy may keep a request for minutes.
async fn a_request_that_arrives_after_its_time_gets_nothing<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let mut session = MySqlConnection::connect(database.url()).await.unwrap();
    for (late, outcome) in [(-1_000_000, "late"), (1_000_000, "granted")] {
        let clock = session.fetch_one(sqlx::raw_sql("CALL fenced_lock_service()"));
        let clock: i64 = clock.await.unwrap().try_get_unchecked("unix_us").unwrap();
        let call = format!(
            "CALL fenced_acquire('r', '{late}', 'a', 1000, 0, 'c', 0, NULL, NULL, {}, NULL)",
            clock + late
        );
        let row = session.fetch_one(sqlx::raw_sql(AssertSqlSafe(call))).await;
        let answer: String = row.unwrap().try_get_unchecked("outcome").unwrap();
        assert_eq!(answer, outcome);
    }
}

async fn a_lease_whose_requests_were_all_answered_leaves_no_tombstone<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    let locks = manager(database.url()).await;
    for _ in 0..3 {
        let guard = locks.acquire("r").ttl(TTL).await.unwrap();
        assert_eq!(guard.release().await.unwrap(), Released::Released);
    }
    let tombstones = "SELECT COUNT(*) FROM fenced_tombstone";
    assert_eq!(count(&pool, tombstones).await, 0);
}

async fn tombstones_are_forgotten_when_no_request_can_come_any_more<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    let backend = connect(database.url()).await;
    let request = request();
    let grant = backend.acquire(&request).await.unwrap().granted().unwrap();
    let AttemptRef {
        resource, holder, ..
    } = request.attempt.clone();
    let lease = Sequencer::new(Issuer::new("mysql").unwrap(), resource, grant.token, holder);
    for _ in 0..2 {
        // The release is sent again.
        let released = backend.release(&lease, true).await.unwrap();
        assert_eq!(released, Released::Released);
    }
    let forget = async || {
        let mut session = pool.acquire().await.unwrap();
        let row = session
            .fetch_one(sqlx::raw_sql("CALL fenced_forget_tombstones()"))
            .await;
        row.unwrap().try_get_unchecked::<i64, _>(0).unwrap()
    };
    assert_eq!(forget().await, 0, "it has its time");
    let error = backend.acquire(&request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Released);
    let older = "UPDATE fenced_tombstone SET minute = minute - 2";
    assert_eq!(pool.execute(older).await.unwrap().rows_affected(), 1);
    assert_eq!(forget().await, 1);
}

/// A late copy of a request whose caller has gone is passed over, although the process of that
/// caller still looks for other waiters.
async fn a_waiter_without_a_caller_delays_no_other<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    let locks = manager(database.url()).await;
    let guard = locks.acquire("r").ttl(TTL).await.unwrap();
    let waiter = locks.clone();
    let next = tokio::spawn(async move { waiter.acquire("r").ttl(TTL).await });
    let waiting = "SELECT COUNT(*) FROM fenced_waiter";
    until("it waits", async || count(&pool, waiting).await == 1).await;
    // A waiter of that process, before the real waiter in the queue.
    let ghost = "INSERT INTO fenced_waiter
        SELECT resource, ticket - 1, 'gone', 'gone', client, wait_until_us, seen_us
        FROM fenced_waiter";
    pool.execute(ghost).await.unwrap();
    guard.release().await.unwrap();
    let next = tokio::time::timeout(std::time::Duration::from_secs(20), next).await;
    let next = next.expect("it waits for a ghost").unwrap().unwrap();
    next.release().await.unwrap();
}

/// A rollback of that transaction would take the lease back.
async fn no_lease_is_granted_in_a_transaction_that_was_left_open<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let options = MySqlPoolOptions::new().max_connections(1);
    let pool = options.connect(database.url()).await.unwrap();
    let runtime = std::sync::Arc::new(TokioRuntime);
    let backend = MySqlBackend::on(&pool, ConnectOptions::default(), runtime);
    let backend = backend.await.unwrap();
    pool.execute("SET autocommit = 0").await.unwrap();
    pool.execute("SELECT COUNT(*) FROM fenced_lease")
        .await
        .unwrap();
    let call = "CALL fenced_acquire('r', 'h', 'a', 1000, 0, 'c', 0, NULL, NULL, NULL, NULL)";
    let refused = pool.execute(sqlx::raw_sql(call)).await.unwrap_err();
    assert!(refused.to_string().contains("in progress"), "{refused}");
    // The lock service has connections of its own.
    let granted = backend.acquire(&request()).await.unwrap();
    assert!(granted.granted().is_some());
    let others = MySqlPool::connect(database.url()).await.unwrap();
    let held = "SELECT COUNT(*) FROM fenced_lease WHERE holder <> ''";
    assert_eq!(count(&others, held).await, 1);
}

on_each_server!(
    a_request_that_arrives_after_its_time_gets_nothing,
    a_lease_whose_requests_were_all_answered_leaves_no_tombstone,
    tombstones_are_forgotten_when_no_request_can_come_any_more,
    a_waiter_without_a_caller_delays_no_other,
    no_lease_is_granted_in_a_transaction_that_was_left_open,
);
