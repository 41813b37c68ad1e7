//! Requests that come late, and the memory that refuses them.

use lock_core::{
    ErrorKind, Holder, Released, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, ConnectOptions, LockBackend as _, LockBackendExt, TokioRuntime,
    },
};
use sqlx::{Connection as _, PgConnection, PgPool, Row as _};

use crate::world::{connect, count, database, named};

const TTL: Ttl = Ttl::secs(60);

fn request() -> AcquireRequest {
    AcquireRequest::new(
        AttemptRef::new(&TokioRuntime, named("r"), Holder::random()),
        TTL,
    )
}

/// A pooler may keep a request for minutes.
#[tokio::test]
async fn a_request_that_arrives_after_its_time_gets_nothing() {
    let database = database().await;
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    for (late, outcome) in [("-1 s", "late"), ("1 s", "granted")] {
        let query = "select outcome from fenced.acquire('r', $1, 'a', 1000,
            not_after => clock_timestamp() + $1::interval)";
        let row = sqlx::query(query).bind(late).fetch_one(&mut connection);
        assert_eq!(row.await.unwrap().get::<&str, _>("outcome"), outcome);
    }
}

#[tokio::test]
async fn a_lease_whose_requests_were_all_answered_leaves_no_tombstone() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let locks = palisade::connect(database.url()).await.unwrap();
    for _ in 0..3 {
        let guard = locks.acquire("r").ttl(TTL).await.unwrap();
        assert_eq!(guard.release().await.unwrap(), Released::Released);
    }
    let tombstones = "select count(*) from fenced.tombstone";
    assert_eq!(count(&pool, tombstones).await, 0);
}

#[tokio::test]
async fn tombstones_are_forgotten_when_no_request_can_come_any_more() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let backend = connect(database.url()).await;
    let request = request();
    let grant = backend.acquire(&request).await.unwrap().granted().unwrap();
    let AttemptRef {
        resource, holder, ..
    } = request.attempt.clone();
    let issuer = lock_core::Issuer::new("postgres").unwrap();
    let lease = Sequencer::new(issuer, resource, grant.token, holder);
    assert_eq!(
        backend.release(&lease, true).await.unwrap(),
        Released::Released
    );

    let forget = "select fenced.forget_tombstones()";
    assert_eq!(count(&pool, forget).await, 0, "it has its time");
    let error = backend.acquire(&request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Released);
    let older = "with aged as (update fenced.tombstone set minute = minute - 2 returning 1)
        select count(*) from aged";
    assert_eq!(count(&pool, older).await, 1);
    assert_eq!(count(&pool, forget).await, 1);
}

/// A late copy of a request whose caller has gone is passed over, although the process of that
/// caller still looks for other waiters.
#[tokio::test]
async fn a_waiter_without_a_caller_delays_no_other() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let locks = palisade::connect(database.url()).await.unwrap();
    let guard = locks.acquire("r").ttl(TTL).await.unwrap();
    let waiter = locks.clone();
    let next = tokio::spawn(async move { waiter.acquire("r").ttl(TTL).await });
    let waiting = "select count(*) from fenced.waiter";
    e2e::servers::until("it waits", async || count(&pool, waiting).await == 1).await;
    // A waiter on the channel of that process, before the real waiter in the queue.
    let ghost = "insert into fenced.waiter
          (resource, ticket, holder, attempt, channel, wait_until, seen_at)
        overriding system value
        select resource, ticket - 1, 'gone', 'gone', channel, 'infinity', clock_timestamp()
        from fenced.waiter";
    sqlx::raw_sql(ghost).execute(&pool).await.unwrap();
    guard.release().await.unwrap();
    let next = tokio::time::timeout(std::time::Duration::from_secs(20), next).await;
    let next = next.expect("it waits for a ghost").unwrap().unwrap();
    next.release().await.unwrap();
}

/// A rollback of that transaction would take the lease back.
#[tokio::test]
async fn no_lease_is_granted_in_a_transaction_that_was_left_open() {
    let database = database().await;
    let options = sqlx::postgres::PgPoolOptions::new().max_connections(1);
    let pool = options.connect(database.url()).await.unwrap();
    let runtime = std::sync::Arc::new(lock_core::backend::TokioRuntime);
    let backend =
        palisade_postgres::PostgresBackend::on(pool.clone(), ConnectOptions::default(), runtime);
    let backend = backend.await.unwrap();
    let mut left = pool.acquire().await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT 1")
        .execute(&mut *left)
        .await
        .unwrap();
    drop(left);
    // That connection is closed, and the next one is not inside a transaction.
    let granted = backend.acquire(&request()).await.unwrap();
    assert!(granted.granted().is_some());
    let others = PgPool::connect(database.url()).await.unwrap();
    let held = "select count(*) from fenced.lease where holder <> ''";
    assert_eq!(count(&others, held).await, 1);
}
