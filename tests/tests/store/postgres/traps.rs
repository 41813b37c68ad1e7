//! Traps of sqlx 0.9.0, each with the naive form as its control. As long as the control fails, the
//! trap is real and our code that avoids it is needed.

use std::{future::poll_fn, pin::pin};

use fenced_store::FencedStore;
use sqlx::PgPool;

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, assert_kind, balance, claimed},
};

/// An error that the caller does not look at: it aborts the transaction.
async fn fail_and_ignore(connection: &mut sqlx::PgConnection) {
    let failed = sqlx::query("SELECT 1 / 0").execute(connection).await;
    assert!(failed.is_err());
}

#[tokio::test]
async fn commit_of_an_aborted_transaction_is_an_error() {
    let (world, grant) = claimed::<PostgresServer>().await;
    let mut tx = world.store().begin(&grant).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    fail_and_ignore(&mut tx).await;
    let error = tx.commit().await.unwrap_err();
    assert_kind!(error, Aborted);
    assert_eq!(balance(&world).await, 100);
}

/// Begins while a claim has the lock of the resource, so that the begin waits. Drops it while it
/// waits. Returns the outcome of the next write on the same connection.
async fn write_after_cancelled_begin<F>(
    world: &PostgresServer,
    pool: &PgPool,
    begin: F,
) -> Result<i64, sqlx::Error>
where
    F: IntoFuture,
{
    let mut resource_lock = world.store().pool().begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(fenced.resource_lock_key('account:42'))")
        .execute(&mut *resource_lock)
        .await
        .unwrap();
    {
        let mut begin = pin!(begin.into_future());
        let mut queued = pin!(world.until_queued(1));
        poll_fn(|context| {
            assert!(begin.as_mut().poll(context).is_pending());
            queued.as_mut().poll(context)
        })
        .await;
    }
    resource_lock.rollback().await.unwrap();

    PostgresServer::add(&mut *pool.acquire().await?, 1)
        .await
        .unwrap();
    // A transaction that was left open ends here, at the latest.
    pool.close().await;
    world.until_unlocked().await;
    Ok(balance(world).await)
}

/// The test includes the control, whose update returned Ok and is gone.
#[tokio::test]
async fn begin_that_is_cancelled_loses_no_write() {
    let (world, grant) = claimed::<PostgresServer>().await;
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool.clone());
    let balance = write_after_cancelled_begin(&world, &pool, store.begin(&grant)).await;
    assert_eq!(balance.unwrap(), 101);

    let pool = world.pool_of_one().await;
    let naive = pool.begin_with(sqlx::AssertSqlSafe(format!(
        "SELECT fenced.begin_fenced('account:42', 33, '{}', 'redis'); BEGIN",
        grant.holder().digest(),
    )));
    let balance = write_after_cancelled_begin(&world, &pool, naive).await;
    assert_eq!(balance.unwrap(), 101);
}
