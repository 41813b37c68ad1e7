//! Calls of `settle` after a commit that was not answered.

use super::{Harness, SqlHarness, assert_kind, balance, claimed, fenced_add, grant, high_water};

/// Settling waits until the transaction that may still commit is over.
pub(crate) async fn settling_waits_for_an_open_transaction<H: Harness>() {
    let (world, grant) = claimed::<H>().await;
    let impatient = world.impatient().await;
    let mut open = world.store().begin(&grant).await.unwrap();
    H::add(&mut open, 1).await.unwrap();
    let busy = impatient.settle(&grant).await.unwrap_err();
    assert_kind!(busy, Busy);
    open.commit().await.unwrap();

    impatient.settle(&grant).await.unwrap();
    assert_eq!(balance(&world).await, 101);
    fenced_add(&world, &grant).await.unwrap();
}

pub(crate) async fn settling_changes_nothing<H: SqlHarness>() {
    let (world, grant) = claimed::<H>().await;
    let before = world.dump().await;
    world.store().settle(&grant).await.unwrap();
    assert_eq!(world.dump().await, before);
}

/// After this error, too, no transaction of the holder is in progress.
pub(crate) async fn a_stale_holder_gets_an_error_when_it_settles<H: Harness>() {
    let (world, old) = claimed::<H>().await;
    let new = grant("account:42", 34);
    world.store().claim(&new).await.unwrap();
    let error = world.store().settle(&old).await.unwrap_err();
    assert_kind!(error, Stale);
}

/// A claim in its place would let a holder in again that has successors, because the store may have
/// lost their claims, too.
pub(crate) async fn settling_without_a_mark_does_not_claim<H: SqlHarness>() {
    let (world, grant) = claimed::<H>().await;
    world.delete_mark(grant.resource()).await;
    let error = world.store().settle(&grant).await.unwrap_err();
    assert_kind!(error, MarkLost);
    assert_eq!(high_water(&world, "account:42").await, None);
}
