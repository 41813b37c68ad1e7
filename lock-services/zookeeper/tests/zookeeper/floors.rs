//! Tokens are above a floor that was raised while others waited.

use e2e::servers::zookeeper;
use lock_core::{FencingToken, Ttl};

use crate::world::{Namespace, until_waiting};

const TTL: Ttl = Ttl::secs(15);

/// The node of a waiter is created with a floor that is lower than the floor for which the holder
/// before it asks.
#[tokio::test]
async fn a_waiter_gets_a_token_above_a_floor_that_is_raised_meanwhile() {
    let namespace = Namespace::fresh(zookeeper().await);
    let (locks, others) = (namespace.connect().await, namespace.connect().await);
    let first = locks.acquire("r").ttl(TTL).await.unwrap();
    let floor = FencingToken::new(first.token().get() + 1_000_000).unwrap();
    let wait = |locks: &lock_core::LockManager, floor: Option<FencingToken>| {
        let locks = locks.clone();
        tokio::spawn(async move {
            let acquire = locks.acquire("r").ttl(TTL);
            match floor {
                Some(floor) => acquire.at_least(floor).await.unwrap(),
                None => acquire.await.unwrap(),
            }
        })
    };
    let lifted = wait(&locks, Some(floor));
    until_waiting(&locks, "r", 1).await;
    let next = wait(&others, None);
    until_waiting(&locks, "r", 2).await;
    let last = wait(&locks, None);
    until_waiting(&locks, "r", 3).await;
    first.release().await.unwrap();

    let lifted = lifted.await.unwrap();
    assert!(lifted.token() >= floor);
    let mut highest = lifted.token();
    lifted.release().await.unwrap();
    for next in [next, last] {
        let next = next.await.unwrap();
        assert!(next.token() > highest, "{} after {highest}", next.token());
        highest = next.token();
        next.release().await.unwrap();
    }
    // Clients that have read the floor before, and clients that come later.
    for locks in [&others, &namespace.connect().await] {
        let next = locks.acquire("r").ttl(TTL).await.unwrap();
        assert!(next.token() > highest, "{} after {highest}", next.token());
        highest = next.token();
        next.release().await.unwrap();
    }
}

/// In the new directory sequence numbers begin again. Tokens and the floor must not.
#[tokio::test]
async fn tokens_rise_when_the_directory_of_a_lock_was_deleted() {
    let namespace = Namespace::fresh(zookeeper().await);
    let locks = namespace.connect().await;
    let observer = namespace.observer().await;
    let floor = FencingToken::new(1_000_000_000).unwrap();
    let mut last = FencingToken::MIN;
    for _ in 0..3 {
        let guard = locks.acquire("r").at_least(floor).ttl(TTL).await.unwrap();
        assert!(guard.token() > last && guard.token() >= floor);
        last = guard.token();
        guard.release().await.unwrap();
        observer
            .delete(&namespace.directory("r"), None)
            .await
            .unwrap();
    }
}

/// Catches: a client takes the next sequence number as proof that no other client came in between.
/// In a directory that was made again, another client may be before that number.
#[tokio::test]
async fn the_number_that_comes_next_proves_nothing_in_a_directory_that_was_made_again() {
    let namespace = Namespace::fresh(zookeeper().await);
    let (locks, others) = (namespace.connect().await, namespace.connect().await);
    let observer = namespace.observer().await;
    let mut last = FencingToken::MIN;
    for directory in 0..3 {
        let guard = locks.acquire("r").ttl(TTL).await.unwrap();
        assert!(guard.token() > last, "directory {directory}");
        guard.release().await.unwrap();
        observer
            .delete(&namespace.directory("r"), None)
            .await
            .unwrap();
        let held = others.acquire("r").ttl(TTL).await.unwrap();
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { locks.acquire("r").ttl(TTL).await.unwrap() }
        });
        until_waiting(&others, "r", 1).await;
        // A waiter that wrongly believes to be the first would have been granted before it is seen
        // to wait again.
        until_waiting(&locks, "r", 1).await;
        assert!(!waiting.is_finished(), "granted while it is held");
        held.release().await.unwrap();
        let next = waiting.await.unwrap();
        last = next.token();
        next.release().await.unwrap();
        observer
            .delete(&namespace.directory("r"), None)
            .await
            .unwrap();
    }
}
