//! Who waits for whom.

use fenced_store::{FenceError, PgIsolation, PgTxOptions};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, balance, fresh, grant, high_water},
};

/// With FOR SHARE alone, transactions of the old holder that come after the claim overtake it, and
/// it waits as long as there are any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_claim_is_not_overtaken() {
    let world: PostgresServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&old).await.unwrap();

    let open = world.store().begin(&old).await.unwrap();
    let overtake = async {
        world.until_queued(1).await;
        // Another session of the old holder does not get in between.
        let late = world.impatient().await.begin(&old).await.unwrap_err();
        assert!(matches!(late, FenceError::Busy { .. }), "{late:?}");
        open.commit().await.unwrap();
    };
    let (claimed, ()) = tokio::join!(world.store().claim(&new), overtake);
    claimed.unwrap();
    world
        .store()
        .begin(&new)
        .await
        .unwrap()
        .rollback()
        .await
        .unwrap();
}

/// The other way round: what waits behind a claim is refused, not let in. With an older snapshot it
/// cannot see by whom, only that the mark has moved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_begin_that_waited_for_a_claim_is_refused() {
    for level in [
        PgIsolation::ReadCommitted,
        PgIsolation::RepeatableRead,
        PgIsolation::Serializable,
    ] {
        let world: PostgresServer = fresh().await;
        let options = PgTxOptions::default().isolation(level);
        let store = world.store().clone().with_options(options);
        let (old, new) = (grant("account:42", 33), grant("account:42", 34));
        store.claim(&old).await.unwrap();

        let open = store.begin(&old).await.unwrap();
        let begin = async {
            world.until_queued(1).await;
            store.begin(&old).await.unwrap_err()
        };
        let end = async {
            world.until_queued(2).await;
            open.rollback().await.unwrap();
        };
        let (claimed, refused, ()) = tokio::join!(store.claim(&new), begin, end);
        claimed.unwrap();
        if level == PgIsolation::ReadCommitted {
            assert!(matches!(refused, FenceError::Stale { .. }), "{refused:?}");
        } else {
            assert!(
                matches!(refused, FenceError::Serialization { .. }),
                "{refused:?}"
            );
            let retried = store.begin(&old).await.unwrap_err();
            assert!(matches!(retried, FenceError::Stale { .. }), "{retried:?}");
        }
    }
}

/// Transactions of one holder share the lock of a resource.
#[tokio::test]
async fn transactions_of_one_holder_do_not_wait_for_each_other() {
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    let store = world.impatient().await;
    store.claim(&grant).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(store.begin(&grant).await.unwrap());
    }
    for tx in open {
        tx.commit().await.unwrap();
    }
}

/// A claim of the same grant again waits until all transactions of the holders so far have ended,
/// its own included: how a caller settles what became of a commit.
#[tokio::test]
async fn a_replayed_claim_drains_open_transactions() {
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    let open = world.store().begin(&grant).await.unwrap();
    let busy = world.impatient().await.claim(&grant).await.unwrap_err();
    assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
    open.rollback().await.unwrap();
    world.store().claim(&grant).await.unwrap();
}

/// A claim that was dropped is either done or not, and leaves no lock.
#[tokio::test]
async fn a_cancelled_claim_leaves_no_lock() {
    let world: PostgresServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&old).await.unwrap();
    let mut open = world.store().begin(&old).await.unwrap();
    tokio::select! {
        claimed = world.store().claim(&new) => panic!("{claimed:?}"),
        () = world.until_queued(1) => {}
    }
    PostgresServer::add(&mut open, 1).await.unwrap();
    open.commit().await.unwrap();
    world.until_unlocked().await;
    assert_eq!(balance(&world).await, 101);
    // It was under way, so it went on: harmless, since its holder may only claim what it holds.
    assert_eq!(high_water(&world, "account:42").await, Some(34));
}
