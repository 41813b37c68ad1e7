//! The reads, the writes and the end of a transaction.

use std::time::Duration;

use fenced_store::memory::MemoryTxOptions;

use crate::{
    room::Room,
    rule::{Harness, assert_kind, balance, claimed, grant, high_water},
};

/// Catches: writes that are seen before they are committed, or that a rollback leaves behind.
#[tokio::test]
async fn a_transaction_keeps_its_writes_to_itself_until_it_commits() {
    let (room, grant) = claimed::<Room>().await;
    let mut tx = room.store().begin(&grant).await.unwrap();
    Room::add(&mut tx, 1).await.unwrap();
    tx.set("other", &"new").unwrap();
    assert_eq!(Room::balance(&mut tx).await, 101);
    assert_eq!(balance(&room).await, 100);
    tx.rollback().await.unwrap();
    assert_eq!(balance(&room).await, 100);

    let mut tx = room.store().begin(&grant).await.unwrap();
    tx.set("other", &"new").unwrap();
    tx.commit().await.unwrap();
    let mut tx = room.store().begin(&grant).await.unwrap();
    tx.remove("other").unwrap();
    assert_eq!(tx.get::<String>("other").unwrap(), None);
    tx.commit().await.unwrap();
    let memory = room.store().memory();
    assert_eq!(memory.get::<String>("other").unwrap(), None);
    assert_eq!(memory.open_transactions(), 0);
}

/// Two transactions of the same holder, which may have both open at once.
/// Catches: an update that is lost.
#[tokio::test]
async fn of_two_transactions_that_change_a_row_one_is_stored() {
    let (room, grant) = claimed::<Room>().await;
    let mut slow = room.store().begin(&grant).await.unwrap();
    Room::add(&mut slow, 1).await.unwrap();
    let mut other = room.store().begin(&grant).await.unwrap();
    Room::add(&mut other, 10).await.unwrap();
    other.commit().await.unwrap();
    let error = slow.commit().await.unwrap_err();
    assert_kind!(error, Serialization);
    assert!(error.is_retryable());
    assert_eq!(balance(&room).await, 110);
}

/// A holder is stopped inside a transaction.
/// Catches: a claim that waits for ever, and a write after the claim.
#[tokio::test]
async fn a_claim_that_has_waited_ends_the_older_transaction() {
    let (room, old) = claimed::<Room>().await;
    let mut tx = room.store().begin(&old).await.unwrap();
    Room::add(&mut tx, 1).await.unwrap();

    let options = MemoryTxOptions::default().lock_timeout(Duration::from_millis(50));
    let store = room.store().clone().with_options(options);
    store.claim(&grant("account:42", 34)).await.unwrap();
    assert_eq!(high_water(&room, "account:42").await, Some(34));
    assert_kind!(Room::add(&mut tx, 1).await.unwrap_err(), Aborted);
    assert_kind!(tx.get::<i64>("account:42").unwrap_err(), Aborted);
    let error = tx.commit().await.unwrap_err();
    assert_kind!(error, Aborted);
    assert_eq!(balance(&room).await, 100);
    assert_eq!(room.store().memory().open_transactions(), 0);
}
