//! Traps of MariaDB and of sqlx 0.9.0, with the naive form as their control.

use fenced_store::FenceError;
use lock_core::Sequencer;
use sqlx::{Executor, MySqlConnection};

use crate::{
    mariadb::server::MariaDbServer,
    rule::{Harness, balance, fenced_add, fresh, grant},
};

async fn claimed() -> (MariaDbServer, Sequencer) {
    let world: MariaDbServer = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    let rows = "INSERT INTO accounts SELECT seq, 0 FROM seq_1000_to_1100";
    world.store().pool().execute(rows).await.unwrap();
    (world, grant)
}

/// Makes MariaDB roll this transaction back, and nobody looks at the error.
async fn deadlock_and_ignore(world: &MariaDbServer, connection: &mut MySqlConnection) {
    MariaDbServer::add(connection, 1).await.unwrap();
    // The one that has written less is the victim.
    let mut other = world.store().pool().begin().await.unwrap();
    other
        .execute("UPDATE accounts SET balance = balance + 1 WHERE id >= 1000")
        .await
        .unwrap();
    let (victim, survivor) = tokio::join!(
        connection.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 1000"),
        MariaDbServer::add(&mut other, 1),
    );
    let error: FenceError = victim.unwrap_err().into();
    assert!(
        matches!(error, FenceError::Serialization { .. }),
        "{error:?}"
    );
    survivor.unwrap();
    other.rollback().await.unwrap();
}

#[tokio::test]
async fn naive_commit_after_a_deadlock_says_ok() {
    let (world, _) = claimed().await;
    let mut tx = world.store().pool().begin().await.unwrap();
    deadlock_and_ignore(&world, &mut tx).await;
    tx.commit().await.unwrap();
    assert_eq!(
        balance(&world).await,
        100,
        "sqlx said Ok, nothing is stored"
    );
}

#[tokio::test]
async fn commit_after_a_deadlock_is_an_error() {
    let (world, grant) = claimed().await;
    let mut tx = world.store().begin(&grant).await.unwrap();
    deadlock_and_ignore(&world, &mut tx).await;
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, FenceError::Aborted), "{error:?}");
    assert_eq!(balance(&world).await, 100);
    fenced_add(&world, &grant).await.unwrap();
}

/// The answer to the commit is lost, so it is not known whether it happened.
#[tokio::test]
async fn a_commit_without_an_answer_is_unknown() {
    let (world, grant) = claimed().await;
    let mut tx = world.store().begin(&grant).await.unwrap();
    MariaDbServer::add(&mut tx, 1).await.unwrap();
    let session: u64 = sqlx::query_scalar("SELECT CONNECTION_ID()")
        .fetch_one(&mut *tx)
        .await
        .unwrap();
    let kill = sqlx::AssertSqlSafe(format!("KILL CONNECTION {session}"));
    world.store().pool().execute(kill).await.unwrap();
    let error = tx.commit().await.unwrap_err();
    assert!(
        matches!(error, FenceError::CommitUnknown { .. }),
        "{error:?}"
    );
    world.store().settle(&grant).await.unwrap();
    assert_eq!(balance(&world).await, 100);
}

/// A lock wait that took too long rolls back its statement. The transaction stays, with its locks.
#[tokio::test]
async fn a_lock_wait_inside_is_busy_and_a_rollback_frees_all() {
    let (world, grant) = claimed().await;
    let store = world
        .store_after("SET SESSION innodb_lock_wait_timeout = 1")
        .await;
    let mut other = world.store().pool().begin().await.unwrap();
    MariaDbServer::add(&mut other, 1).await.unwrap();
    let mut tx = store.begin(&grant).await.unwrap();
    let error: FenceError = MariaDbServer::add(&mut tx, 1).await.unwrap_err().into();
    assert!(matches!(error, FenceError::Busy { .. }), "{error:?}");
    let newer = crate::rule::grant("account:42", 34);
    let busy = world.impatient().await.claim(&newer).await.unwrap_err();
    assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
    tx.rollback().await.unwrap();
    world.impatient().await.claim(&newer).await.unwrap();
}
