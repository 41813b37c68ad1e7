//! Transactions that their holder numbers.

use std::time::Duration;

use fenced_store::FenceError;
use lock_core::Sequencer;
use tokio::{task::JoinSet, time::timeout};

use super::{Harness, balance, fenced_add, fresh, grant};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Adds 1 to the balance in a transaction with that number.
async fn numbered_add<H: Harness>(
    world: &H,
    grant: &Sequencer,
    seq: u64,
) -> Result<(), FenceError> {
    let mut tx = world.store().begin(grant).seq(seq).await?;
    H::add(&mut tx, 1).await?;
    tx.commit().await.map(drop)
}

async fn claimed<H: Harness>(resource: &str, number: u64) -> (H, Sequencer) {
    let world: H = fresh().await;
    let grant = grant(resource, number);
    world.store().claim(&grant).await.unwrap();
    (world, grant)
}

#[track_caller]
fn assert_out_of_order(refused: Result<(), FenceError>, of: &Sequencer, seq: u64, after: u64) {
    match refused.unwrap_err() {
        FenceError::OutOfOrder {
            resource,
            presented,
            last,
            ..
        } => assert_eq!((&resource, presented, last), (of.resource(), seq, after)),
        error => panic!("{error:?}"),
    }
}

pub(crate) async fn numbers_have_to_rise<H: Harness>() {
    let (world, grant): (H, _) = claimed("account:42", 33).await;
    numbered_add(&world, &grant, 5).await.unwrap();
    for late in [5, 4, 1] {
        assert_out_of_order(numbered_add(&world, &grant, late).await, &grant, late, 5);
    }
    numbered_add(&world, &grant, 6).await.unwrap();
    numbered_add(&world, &grant, 999_999_999_999_999)
        .await
        .unwrap();
    assert_eq!(balance(&world).await, 103);
    let error = numbered_add(&world, &grant, 7).await.unwrap_err();
    assert!(!error.is_fenced() && !error.is_retryable());
    // Who does not count is not counted.
    fenced_add(&world, &grant).await.unwrap();
}

/// Before anything is sent: the pool is closed.
pub(crate) async fn a_number_out_of_range_is_refused_unsent<H: Harness>() {
    let (world, grant): (H, _) = claimed("account:42", 33).await;
    world.store().pool().close().await;
    for wrong in [0, 1_000_000_000_000_000, u64::MAX] {
        match world.store().begin(&grant).seq(wrong).await.unwrap_err() {
            FenceError::SeqOutOfRange { presented } => assert_eq!(presented, wrong),
            error => panic!("{error:?}"),
        }
    }
}

pub(crate) async fn a_number_that_was_rolled_back_is_free_again<H: Harness>() {
    let (world, grant): (H, _) = claimed("account:42", 33).await;
    numbered_add(&world, &grant, 4).await.unwrap();
    let tx = world.store().begin(&grant).seq(5).await.unwrap();
    tx.rollback().await.unwrap();
    let tx = world.store().begin(&grant).seq(6).await.unwrap();
    drop(tx);
    numbered_add(&world, &grant, 5).await.unwrap();
    assert_out_of_order(numbered_add(&world, &grant, 5).await, &grant, 5, 5);
}

pub(crate) async fn a_new_grant_counts_afresh<H: Harness>() {
    let (world, old): (H, _) = claimed("account:42", 33).await;
    numbered_add(&world, &old, 500).await.unwrap();
    let new = grant("account:42", 34);
    world.store().claim(&new).await.unwrap();
    let stale = numbered_add(&world, &old, 501).await.unwrap_err();
    assert!(matches!(stale, FenceError::Stale { .. }), "{stale:?}");
    numbered_add(&world, &new, 1).await.unwrap();
    assert_out_of_order(numbered_add(&world, &new, 1).await, &new, 1, 1);
}

/// The number counts for every resource that is entered, and its refusal is one for all.
pub(crate) async fn a_number_counts_for_every_resource_entered<H: Harness>() {
    let (world, one): (H, _) = claimed("account:1", 33).await;
    let two = grant("account:2", 7);
    world.store().claim(&two).await.unwrap();
    numbered_add(&world, &two, 5).await.unwrap();
    let both = |seq| {
        let begin = world.store().begin(&one).and(&two).seq(seq).into_future();
        async move { begin.await?.commit().await.map(drop) }
    };
    assert_out_of_order(both(5).await, &two, 5, 5);
    // The refusal above has not taken it for the other one.
    numbered_add(&world, &one, 5).await.unwrap();
    both(6).await.unwrap();
    assert_out_of_order(numbered_add(&world, &one, 6).await, &one, 6, 6);
    assert_out_of_order(numbered_add(&world, &two, 6).await, &two, 6, 6);
}

/// One that is under way is waited for: its commit takes the number, its rollback gives it back.
pub(crate) async fn a_number_under_way_is_waited_for<H: Harness>() {
    let (world, grant): (H, _) = claimed("account:42", 33).await;
    let impatient = world.impatient().await;
    for (seq, commits) in [(1, true), (2, false)] {
        let mut open = world.store().begin(&grant).seq(seq).await.unwrap();
        let busy = impatient.begin(&grant).seq(seq).await.unwrap_err();
        assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
        H::add(&mut open, 1).await.unwrap();
        let second = async { world.store().begin(&grant).seq(seq).await };
        let end = async {
            if commits {
                open.commit().await.map(drop)
            } else {
                open.rollback().await
            }
        };
        let (second, ended) = timeout(PATIENCE, async { tokio::join!(second, end) })
            .await
            .unwrap();
        ended.unwrap();
        if commits {
            assert_out_of_order(second.map(drop), &grant, seq, seq);
        } else {
            second.unwrap().commit().await.unwrap();
        }
    }
    assert_eq!(balance(&world).await, 101);
}

/// A request that was sent several times at once, as an impatient client does.
pub(crate) async fn of_the_same_number_at_once_one_is_accepted<H: Harness>() {
    let (world, grant): (H, _) = claimed("account:42", 33).await;
    for seq in 1..=6 {
        let mut copies = JoinSet::new();
        for _ in 0..4 {
            let (store, grant) = (world.store().clone(), grant.clone());
            copies.spawn(async move {
                let mut tx = store.begin(&grant).seq(seq).await?;
                H::add(&mut tx, 1).await?;
                tx.commit().await.map(drop)
            });
        }
        let (accepted, refused): (Vec<_>, Vec<_>) = timeout(PATIENCE, copies.join_all())
            .await
            .unwrap()
            .into_iter()
            .partition(Result::is_ok);
        assert_eq!((accepted.len(), refused.len()), (1, 3), "{refused:?}");
        for refused in refused {
            assert_out_of_order(refused, &grant, seq, seq);
        }
    }
    assert_eq!(balance(&world).await, 106);
}

/// The control: without numbers each of them is accepted.
pub(crate) async fn without_numbers_every_copy_is_accepted<H: Harness>() {
    let (world, grant): (H, _) = claimed("account:42", 33).await;
    for _ in 0..4 {
        fenced_add(&world, &grant).await.unwrap();
    }
    assert_eq!(balance(&world).await, 104);
}
