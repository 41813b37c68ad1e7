//! Connections that the application left inside a transaction: in sqlx 0.9.0 a dropped `begin`
//! forgets the transaction that it has opened.

use fenced_store::FencedStore;
use lock_testing::DropAt;
use sqlx::{Connection, Executor, PgPool};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, SqlHarness, balance, claimed, grant, high_water},
};

/// Usually the future has sent its message when it is dropped, and waits for the answer. Sometimes
/// the answer is there already.
async fn is_dropped_while_it_waits(future: impl Future) -> bool {
    DropAt::waiting(1).poll(future).await.is_none()
}

/// The only connection of the pool, inside a transaction that never ends.
async fn stray(world: &PostgresServer) -> PgPool {
    let pool = world.pool_of_one().await;
    let mut connection = pool.acquire().await.unwrap();
    while !is_dropped_while_it_waits(connection.begin()).await {}
    pool
}

/// Catches: a look that reads the snapshot of a transaction which was left open.
#[tokio::test]
async fn a_look_on_a_stray_sees_what_is_committed_by_now() {
    let (world, _) = claimed::<PostgresServer>().await;
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool.clone());
    for token in 34..=36 {
        pool.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
            .await
            .unwrap();
        let grant = grant("account:42", token);
        world.store().claim(&grant).await.unwrap();
        let seen = store.high_water(grant.resource()).await.unwrap().unwrap();
        assert_eq!(seen.token(), grant.token());
        pool.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
            .await
            .unwrap();
        let issuer = store.admin().issuer().await.unwrap();
        assert_eq!(issuer.as_ref(), Some(grant.issuer()));
    }
}

/// Its commit would store the writes that another user left behind. The commit of the control does
/// this.
#[tokio::test]
async fn begin_on_a_stray_stores_nothing_of_others() {
    let (world, grant) = claimed::<PostgresServer>().await;
    let left_behind = async || {
        let pool = stray(&world).await;
        let left = "UPDATE accounts SET balance = balance + 1000";
        pool.execute(left).await.unwrap();
        pool
    };
    let store = FencedStore::new(left_behind().await);
    let mut tx = store.begin(&grant).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);

    let naive = sqlx::AssertSqlSafe(format!(
        "SELECT fenced.begin_fenced('account:42', 33, '{}', 'redis'); BEGIN",
        grant.holder().digest(),
    ));
    let mut tx = left_behind().await.begin_with(naive).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 1102);
}

/// Catches: a migration that ends with the transaction which was left open.
#[tokio::test]
async fn migrate_on_a_stray_is_not_lost() {
    let world = PostgresServer::unmigrated().await;
    let pool = stray(&world).await;
    FencedStore::new(pool.clone()).migrate().await.unwrap();
    pool.close().await;
    assert_eq!(high_water(&world, "account:42").await, None);
}

/// The commit goes on, and leaves no open transaction behind.
#[tokio::test]
async fn a_commit_that_is_dropped_comes_to_its_end() {
    let (world, grant) = claimed::<PostgresServer>().await;
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool.clone());
    for expected in 101..=105 {
        let mut tx = store.begin(&grant).await.unwrap();
        PostgresServer::add(&mut tx, 1).await.unwrap();
        is_dropped_while_it_waits(tx.commit()).await;
        // Waits until the transaction has ended.
        world.store().claim(&grant).await.unwrap();
        assert_eq!(balance(&world).await, expected);
        pool.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
            .await
            .unwrap();
        let isolation: String = sqlx::query_scalar("SHOW transaction_isolation")
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(isolation, "read committed", "no transaction is open");
    }
}

/// A savepoint of sqlx whose `begin` is dropped ends the whole transaction.
#[tokio::test]
async fn naive_savepoint_that_is_dropped_stores_later_writes_unfenced() {
    let (world, _) = claimed::<PostgresServer>().await;
    let mut tx = world.store().pool().begin().await.unwrap();
    while !is_dropped_while_it_waits(Connection::begin(&mut *tx)).await {}
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(balance(&world).await, 101, "rolled back, and stored");
}

/// The test does this on the connection of a fenced transaction, although the documentation forbids
/// it.
#[tokio::test]
async fn after_a_dropped_savepoint_of_sqlx_no_write_gets_through() {
    let (world, old) = claimed::<PostgresServer>().await;
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool);
    let mut tx = store.begin(&old).await.unwrap();
    while !is_dropped_while_it_waits(Connection::begin(&mut *tx)).await {}
    PostgresServer::add(&mut tx, 1).await.unwrap_err();
    world.store().claim(&grant("account:42", 34)).await.unwrap();
    for _ in 0..3 {
        PostgresServer::add(&mut tx, 1).await.unwrap_err();
    }
    tx.commit().await.unwrap_err();
    assert_eq!(balance(&world).await, 100);
    // The pool has replaced the connection.
    assert_eq!(
        store
            .high_water(old.resource())
            .await
            .unwrap()
            .unwrap()
            .token()
            .get(),
        34
    );
}
