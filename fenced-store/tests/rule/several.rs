//! Several resources in one transaction: all of them are entered, or none.

use std::time::Duration;

use fenced_store::FenceError;
use lock_core::Sequencer;
use tokio::{task::JoinSet, time::timeout};

use super::{Harness, SqlHarness, assert_kind, balance, fenced_add, fresh, grant, high_water};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

async fn claimed<H: Harness>(world: &H, resource: &str, number: u64) -> Sequencer {
    let grant = grant(resource, number);
    world.store().claim(&grant).await.unwrap();
    grant
}

pub(crate) async fn several_resources_share_a_transaction<H: Harness>() {
    let world: H = fresh().await;
    let from = claimed(&world, "account:2", 7).await;
    let to = claimed(&world, "account:1", 33).await;
    let fee = claimed(&world, "account:3", 5).await;

    let mut tx = world.store().begin(&from).and(&to).and(&fee).await.unwrap();
    assert_eq!(tx.sequencer(), &from);
    assert!(tx.sequencers().eq([&from, &to, &fee]));
    H::add(&mut tx, 1).await.unwrap();
    let impatient = world.impatient().await;
    for named in [&from, &to, &fee] {
        let newer = grant(named.resource().as_str(), 900);
        let error = impatient.claim(&newer).await.unwrap_err();
        assert_kind!(error, Busy);
    }
    let receipt = tx.commit().await.unwrap();
    assert_eq!(receipt.resource(), from.resource());
    assert_eq!(receipt.token(), from.token());
    let entered: Vec<_> = receipt
        .resources()
        .map(|(resource, token)| (resource.as_str(), token.get()))
        .collect();
    let expected = [("account:2", 7), ("account:1", 33), ("account:3", 5)];
    assert_eq!(entered, expected);
    assert_eq!(balance(&world).await, 101);
    for named in [from, to, fee] {
        let newer = grant(named.resource().as_str(), 900);
        impatient.claim(&newer).await.unwrap();
    }
}

/// The begin is repeated more often than the pool has connections, so that a connection that is not
/// given back would be missing.
pub(crate) async fn a_stale_one_among_several_refuses_all<H: SqlHarness>() {
    let world: H = fresh().await;
    let first = claimed(&world, "account:1", 33).await;
    let stale = claimed(&world, "account:2", 33).await;
    let last = claimed(&world, "account:3", 33).await;
    claimed(&world, "account:2", 34).await;
    let unclaimed = grant("account:0", 1);
    let before = world.dump().await;

    for _ in 0..10 {
        let begin = world.store().begin(&first).and(&last).and(&stale);
        let error = begin.await.unwrap_err();
        assert_kind!(error, Stale);
        assert_eq!(error.resource(), Some(stale.resource()));
        let error = world
            .store()
            .begin(&last)
            .and(&unclaimed)
            .await
            .unwrap_err();
        assert_kind!(error, NotClaimed);
        assert_eq!(error.resource(), Some(unclaimed.resource()));
    }
    assert_eq!(world.dump().await, before);
    // The resources that were entered before it are free again.
    for named in [&first, &last] {
        world.impatient().await.claim(named).await.unwrap();
        fenced_add(&world, named).await.unwrap();
    }
}

/// The refusal comes before anything is sent, because the pool is closed.
pub(crate) async fn the_same_resource_twice_is_refused_unsent<H: SqlHarness>() {
    let world: H = fresh().await;
    let (grant, twin) = (grant("account:42", 33), grant("account:42", 34));
    let other = super::grant("account:43", 33);
    world.store().pool().close().await;
    let store = world.store();
    for begin in [
        store.begin(&grant).and(&grant),
        store.begin(&grant).and(&other).and(&twin),
    ] {
        match begin.await.unwrap_err() {
            FenceError::RepeatedResource { resource } => assert_eq!(&resource, grant.resource()),
            error => panic!("{error:?}"),
        }
    }
    let error = store.begin(&grant).and(&other).await.unwrap_err();
    assert_kind!(error, Db);
}

/// A transaction that named its resources in the other order waits for `account:2`, and has entered
/// `account:1` already.
pub(crate) async fn resources_are_entered_in_the_order_of_their_names<H: Harness>() {
    let world: H = fresh().await;
    let one = claimed(&world, "account:1", 33).await;
    let two = claimed(&world, "account:2", 33).await;
    let newer = grant("account:2", 34);

    let open = world.store().begin(&two).await.unwrap();
    let store = world.store().clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { store.claim(&newer).await });
    let impatient = world.impatient().await;
    // Until the claim is in the queue, nothing has to wait behind it.
    let behind_the_claim = async {
        while impatient.begin(&two).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, behind_the_claim).await.unwrap();
    let (store, named) = (world.store().clone(), [two.clone(), one.clone()]);
    tasks.spawn(async move {
        let [two, one] = named;
        store.begin(&two).and(&one).await.map(drop)
    });
    let entered = async {
        while impatient.claim(&one).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, entered).await.unwrap();

    open.commit().await.unwrap();
    for ended in tasks.join_all().await {
        // Without a queue (SQLite) the transaction may have been faster than the claim.
        assert!(
            matches!(ended, Ok(()) | Err(FenceError::Stale { .. })),
            "{ended:?}"
        );
    }
    assert_eq!(high_water(&world, "account:2").await, Some(34));
    impatient.claim(&one).await.unwrap();
}

/// Transactions that name two resources in both orders, with claims of both resources in between.
pub(crate) async fn either_order_of_names_goes_with_claims<H: Harness>() {
    let world: H = fresh().await;
    let one = claimed(&world, "account:1", 33).await;
    let two = claimed(&world, "account:2", 33).await;
    let mut tasks = JoinSet::new();
    for (first, second) in [(&one, &two), (&two, &one)] {
        let (first, second) = (first.clone(), second.clone());
        let (store, claimed) = (world.store().clone(), first.clone());
        tasks.spawn(async move {
            let mut stored = 0;
            while stored < 12 {
                let mut tx = store.begin(&first).and(&second).await?;
                H::add(&mut tx, 1).await?;
                match tx.commit().await {
                    Ok(_) => stored += 1,
                    Err(error) if error.is_retryable() => {}
                    Err(error) => return Err(error),
                }
            }
            Ok::<_, FenceError>(())
        });
        let store = world.store().clone();
        tasks.spawn(async move {
            for _ in 0..12 {
                store.claim(&claimed).await?;
            }
            Ok(())
        });
    }
    for task in timeout(PATIENCE, tasks.join_all()).await.unwrap() {
        task.unwrap();
    }
    assert_eq!(balance(&world).await, 124);
}
