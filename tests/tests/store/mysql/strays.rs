//! Connections that were left inside a transaction. MariaDB commits the writes of that transaction
//! when another one begins, so no write of that transaction is lost, and none is in our
//! transaction.

use e2e::servers::MySqlServer;
use fenced_store::FencedStore;
use sqlx::{Connection, Executor, MySqlPool};

use crate::{
    mysql::server::{MySqlStore, on},
    rule::{Harness, balance, claimed, fenced_add, grant, hand_over, high_water, issuer, service},
};

/// The only connection of the pool, inside a transaction that sqlx does not know of.
async fn stray<S: MySqlServer>(world: &MySqlStore<S>) -> MySqlPool {
    let pool = world.pool_of_one().await;
    pool.execute("START TRANSACTION").await.unwrap();
    pool
}

/// A session of the application that does not commit by itself: there even a look begins a
/// transaction, and later looks would see the same state.
/// Catches: a claim that is not committed, or a look that repeats an older one.
async fn in_a_session_without_autocommit_claims_are_committed_and_looks_are_new<S: MySqlServer>() {
    let (world, old) = claimed::<MySqlStore<S>>().await;
    let store = world.store_after("SET SESSION autocommit = 0").await;
    store.claim(&grant("account:42", 34)).await.unwrap();
    assert_eq!(high_water(&world, "account:42").await, Some(34));
    assert!(fenced_add(&world, &old).await.unwrap_err().is_fenced());
    for token in 35..=37 {
        let grant = grant("account:42", token);
        world.store().claim(&grant).await.unwrap();
        let seen = store.high_water(grant.resource()).await.unwrap().unwrap();
        assert_eq!(seen.token(), grant.token());
    }
    hand_over(world.store(), "redis", &service("etcd")).await;
    assert_eq!(store.admin().issuer().await.unwrap(), Some(issuer("etcd")));
}

/// The writes of the application there were answered with Ok. So they are stored, whatever the
/// outcome of our transaction is.
async fn begin_on_a_stray_has_nothing_of_others_in_it<S: MySqlServer>() {
    let (world, grant) = claimed::<MySqlStore<S>>().await;
    let pool = stray(&world).await;
    pool.execute("UPDATE accounts SET balance = balance + 1000")
        .await
        .unwrap();
    let store = FencedStore::new(pool);
    let mut tx = store.begin(&grant).await.unwrap();
    assert_eq!(balance(&world).await, 1100);
    MySqlStore::<S>::add(&mut tx, 1).await.unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(balance(&world).await, 1100);
}

async fn a_connection_is_clean_after_every_end<S: MySqlServer>() {
    let settings = on::<S, _>(
        "SELECT CAST(CONCAT_WS(' ', @@SESSION.innodb_lock_wait_timeout,
        @@SESSION.idle_transaction_timeout, @@SESSION.max_statement_time, @@SESSION.wait_timeout,
        @@SESSION.tx_isolation, @@SESSION.autocommit, @@in_transaction) AS CHAR)",
        "SELECT CAST(CONCAT_WS(' ', @@SESSION.innodb_lock_wait_timeout,
        @@SESSION.lock_wait_timeout, @@SESSION.max_execution_time, @@SESSION.wait_timeout,
        @@SESSION.transaction_isolation, @@SESSION.autocommit) AS CHAR)",
    );
    let (world, grant) = claimed::<MySqlStore<S>>().await;
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool.clone());
    let settings = async || {
        let settings = sqlx::query_scalar::<_, String>(settings);
        settings.fetch_one(&pool).await.unwrap()
    };
    let before = settings().await;
    store.claim(&grant).await.unwrap();
    assert_eq!(settings().await, before, "after a claim");
    assert!(store.claim(&self::grant("account:42", 32)).await.is_err());
    assert_eq!(settings().await, before, "after a refused claim");
    store.begin(&grant).await.unwrap().commit().await.unwrap();
    assert_eq!(settings().await, before, "after a commit");
    store.begin(&grant).await.unwrap().rollback().await.unwrap();
    assert_eq!(settings().await, before, "after a rollback");
    drop(store.begin(&grant).await.unwrap());
    assert_eq!(settings().await, before, "after a drop");
    assert!(store.begin(&self::grant("account:42", 32)).await.is_err());
    assert_eq!(settings().await, before, "after a refused begin");

    let notes: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM fenced_open_transaction")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(notes, 0);
    assert!(!pool.acquire().await.unwrap().is_in_transaction());
}

on_both!(
    in_a_session_without_autocommit_claims_are_committed_and_looks_are_new,
    begin_on_a_stray_has_nothing_of_others_in_it,
    a_connection_is_clean_after_every_end,
);
