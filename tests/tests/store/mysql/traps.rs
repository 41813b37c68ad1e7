//! Traps of MariaDB and of sqlx 0.9.0, with the naive form as their control.

use e2e::servers::MySqlServer;
use fenced_store::FenceError;
use lock_core::Sequencer;
use sqlx::{Executor, MySqlConnection};

use crate::{
    mysql::server::MySqlStore,
    rule::{Harness, assert_kind, balance, claimed, fenced_add},
};

async fn with_rows<S: MySqlServer>() -> (MySqlStore<S>, Sequencer) {
    let (world, grant) = claimed::<MySqlStore<S>>().await;
    let rows = "INSERT INTO accounts WITH RECURSIVE numbers (n) AS (
          SELECT 1000 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1100)
        SELECT n, 0 FROM numbers";
    world.store().pool().execute(rows).await.unwrap();
    (world, grant)
}

/// Makes MariaDB roll this transaction back, and ignores the error.
async fn deadlock_and_ignore<S: MySqlServer>(
    world: &MySqlStore<S>,
    connection: &mut MySqlConnection,
) {
    MySqlStore::<S>::add(connection, 1).await.unwrap();
    // The transaction that has written less is the victim of the deadlock.
    let mut other = world.store().pool().begin().await.unwrap();
    other
        .execute("UPDATE accounts SET balance = balance + 1 WHERE id >= 1000")
        .await
        .unwrap();
    let (victim, survivor) = tokio::join!(
        connection.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 1000"),
        MySqlStore::<S>::add(&mut other, 1),
    );
    let error: FenceError = victim.unwrap_err().into();
    assert_kind!(error, Serialization);
    survivor.unwrap();
    other.rollback().await.unwrap();
}

/// The test includes the control: sqlx returns Ok, and nothing is stored.
async fn commit_after_a_deadlock_is_an_error<S: MySqlServer>() {
    let (world, grant) = with_rows::<S>().await;
    let mut naive = world.store().pool().begin().await.unwrap();
    deadlock_and_ignore(&world, &mut naive).await;
    naive.commit().await.unwrap();
    assert_eq!(balance(&world).await, 100);

    let mut tx = world.store().begin(&grant).await.unwrap();
    deadlock_and_ignore(&world, &mut tx).await;
    let error = tx.commit().await.unwrap_err();
    assert_kind!(error, Aborted);
    assert_eq!(balance(&world).await, 100);
    fenced_add(&world, &grant).await.unwrap();
}

/// A lock wait that took too long rolls back its statement. The transaction stays, with its locks.
async fn a_lock_wait_inside_is_busy_and_a_rollback_frees_all<S: MySqlServer>() {
    let (world, grant) = with_rows::<S>().await;
    let store = world
        .store_after("SET SESSION innodb_lock_wait_timeout = 1")
        .await;
    let mut other = world.store().pool().begin().await.unwrap();
    MySqlStore::<S>::add(&mut other, 1).await.unwrap();
    let mut tx = store.begin(&grant).await.unwrap();
    let error: FenceError = MySqlStore::<S>::add(&mut tx, 1).await.unwrap_err();
    assert_kind!(error, Busy);
    let newer = crate::rule::grant("account:42", 34);
    let busy = world.impatient().await.claim(&newer).await.unwrap_err();
    assert_kind!(busy, Busy);
    tx.rollback().await.unwrap();
    world.impatient().await.claim(&newer).await.unwrap();
}

on_both!(
    commit_after_a_deadlock_is_an_error,
    a_lock_wait_inside_is_busy_and_a_rollback_frees_all,
);
