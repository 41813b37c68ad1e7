//! Traps of sqlx 0.9.0, each with the naive form as its control: as long as the control fails, the
//! trap is real and our way around it is needed.

use std::{future::poll_fn, pin::pin};

use fenced_store::{FenceError, FencedStore};
use lock_core::Sequencer;
use sqlx::PgPool;

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, balance, fresh, grant},
};

async fn claimed() -> (PostgresServer, Sequencer) {
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    (world, grant)
}

/// An error that the caller does not look at: it aborts the transaction.
async fn fail_and_ignore(connection: &mut sqlx::PgConnection) {
    let failed = sqlx::query("SELECT 1 / 0").execute(connection).await;
    assert!(failed.is_err());
}

#[tokio::test]
async fn naive_commit_of_an_aborted_transaction_says_ok() {
    let (world, _) = claimed().await;
    let mut tx = world.store().pool().begin().await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    fail_and_ignore(&mut tx).await;
    tx.commit().await.unwrap();
    assert_eq!(
        balance(&world).await,
        100,
        "sqlx said Ok, nothing is stored"
    );
}

#[tokio::test]
async fn commit_of_an_aborted_transaction_is_an_error() {
    let (world, grant) = claimed().await;
    let mut tx = world.store().begin(&grant).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    fail_and_ignore(&mut tx).await;
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, FenceError::Aborted), "{error:?}");
    assert_eq!(balance(&world).await, 100);
}

/// Where the next transaction finds what the last one left behind.
#[tokio::test]
async fn a_connection_is_clean_after_a_commit() {
    let (world, grant) = claimed().await;
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool.clone());
    for expected in 101..=103 {
        let mut tx = store.begin(&grant).await.unwrap();
        PostgresServer::add(&mut tx, 1).await.unwrap();
        tx.commit().await.unwrap();
        // A transaction that is still open somewhere would lose this.
        sqlx::query("CREATE TABLE IF NOT EXISTS written_outside (id int)")
            .execute(&pool)
            .await
            .unwrap();
        let left = "SELECT current_setting('fenced.open_transaction')
                    || (SELECT count(*) FROM pg_cursors WHERE name LIKE 'fenced%')";
        let left: String = sqlx::query_scalar(left).fetch_one(&pool).await.unwrap();
        assert_eq!(left, "0", "the fence ends with its transaction");
        assert_eq!(balance(&world).await, expected);
    }
    let visible: bool = sqlx::query_scalar("SELECT to_regclass('written_outside') IS NOT NULL")
        .fetch_one(world.store().pool())
        .await
        .unwrap();
    assert!(visible);
}

/// The message that enters before it begins leaves nothing behind when entering is refused.
#[tokio::test]
async fn a_refused_begin_leaves_a_usable_connection() {
    let (world, old) = claimed().await;
    world.store().claim(&grant("account:42", 34)).await.unwrap();
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool.clone());
    for _ in 0..3 {
        assert!(store.begin(&old).await.unwrap_err().is_fenced());
        sqlx::query("SELECT 1").execute(&pool).await.unwrap();
    }
}

/// What the user's next statement is told does not speak of the commit, which is told by itself.
#[tokio::test]
async fn a_statement_after_a_failed_one_has_the_databases_error() {
    let (world, grant) = claimed().await;
    let mut tx = world.store().begin(&grant).await.unwrap();
    fail_and_ignore(&mut tx).await;
    let next = sqlx::query("SELECT 1").execute(&mut *tx).await;
    match next.unwrap_err().into() {
        FenceError::Db { source } => {
            let error = source.as_database_error().unwrap();
            assert_eq!(error.code().unwrap(), "25P02");
        }
        other => panic!("{other:?}"),
    }
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, FenceError::Aborted), "{error:?}");
}

#[tokio::test]
async fn naive_check_inside_the_transaction_poisons_the_pool() {
    let (world, _) = claimed().await;
    let pool = world.pool_of_one().await;
    let naive = "BEGIN; SELECT fenced.begin_fenced('account:42', 1, 'holder', 'redis')";
    assert!(pool.begin_with(naive).await.is_err());
    for _ in 0..3 {
        let next = sqlx::query("SELECT 1").execute(&pool).await.unwrap_err();
        assert_eq!(next.as_database_error().unwrap().code().unwrap(), "25P02");
    }
}

/// Begins while a claim has the lock of the resource, so that it waits, and is dropped while it
/// does. Says what becomes of the next write on the same connection.
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

    PostgresServer::add(&mut *pool.acquire().await?, 1).await?;
    // What was left open ends here, at the latest.
    pool.close().await;
    world.until_unlocked().await;
    Ok(balance(world).await)
}

#[tokio::test]
async fn naive_begin_that_is_cancelled_loses_the_next_write() {
    let (world, grant) = claimed().await;
    let pool = world.pool_of_one().await;
    let naive = pool.begin_with(sqlx::AssertSqlSafe(format!(
        "SELECT fenced.begin_fenced('account:42', 33, '{}', 'redis'); BEGIN",
        grant.holder().digest(),
    )));
    let balance = write_after_cancelled_begin(&world, &pool, naive)
        .await
        .unwrap();
    assert_eq!(balance, 100, "the update said Ok and is gone");
}

#[tokio::test]
async fn begin_that_is_cancelled_loses_no_write() {
    let (world, grant) = claimed().await;
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool.clone());
    let begin = store.begin(&grant);
    let balance = write_after_cancelled_begin(&world, &pool, begin)
        .await
        .unwrap();
    assert_eq!(balance, 101);
}
