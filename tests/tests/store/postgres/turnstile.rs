//! The order in which claims and transactions wait for each other.

use fenced_store::{PgIsolation, PgTxOptions};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, assert_kind, claimed, fresh, grant},
};

/// With FOR SHARE alone, transactions of the old holder that come after the claim overtake it, and
/// the claim waits as long as there are any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_claim_is_not_overtaken() {
    let (world, old) = claimed::<PostgresServer>().await;
    let new = grant("account:42", 34);

    let open = world.store().begin(&old).await.unwrap();
    let overtake = async {
        world.until_queued(1).await;
        // Another session of the old holder does not get in between.
        let late = world.impatient().await.begin(&old).await.unwrap_err();
        assert_kind!(late, Busy);
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

/// A transaction that waits behind a claim is refused. With an older snapshot it cannot see the new
/// holder, but it sees that the mark has moved.
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
            assert_kind!(refused, Stale);
        } else {
            assert_kind!(refused, Serialization);
            let retried = store.begin(&old).await.unwrap_err();
            assert_kind!(retried, Stale);
        }
    }
}

/// Transactions of one holder share the lock of a resource.
/// Catches: a fence that is an exclusive lock.
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
