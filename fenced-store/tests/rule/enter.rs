//! Grants that may begin, and the traces of a transaction.

use fenced_store::FenceError;
use lock_core::ResourceName;

use super::{
    Harness, SqlHarness, assert_kind, balance, claimed, fenced_add, forgetful, fresh, grant,
    high_water, protected_by,
};

/// Statements that end a transaction behind sqlx's back.
pub(crate) const ENDS: [&str; 4] = ["ROLLBACK", "COMMIT", "ROLLBACK; BEGIN", "COMMIT; BEGIN"];

/// A statement that ends the transaction also ends the fence, so a receipt would be wrong.
pub(crate) async fn a_transaction_that_was_ended_inside_has_no_receipt<H: SqlHarness>() {
    let (world, grant) = claimed::<H>().await;
    let store = world.store_of_one().await;
    for statement in ENDS {
        let mut tx = store.begin(&grant).await.unwrap();
        H::execute(&mut tx, statement).await.unwrap();
        H::add_by_itself(&mut tx, 0).await.unwrap();
        let error = tx.commit().await.unwrap_err();
        assert_kind!(error, Aborted, "{statement}");
    }
    let mut tx = store.begin(&grant).await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// The control: without the fence the write of the stale holder is stored.
pub(crate) async fn stale_holder_cannot_begin<H: SqlHarness>() {
    let (world, old) = claimed::<H>().await;
    let new = grant("account:42", 34);
    fenced_add(&world, &old).await.unwrap();
    world.store().claim(&new).await.unwrap();

    match world.store().begin(&old).await.unwrap_err() {
        FenceError::Stale {
            resource,
            presented,
            high_water,
            ..
        } => {
            assert_eq!(resource.as_str(), "account:42");
            assert_eq!((presented.get(), high_water.get()), (33, 34));
        }
        other => panic!("{other:?}"),
    }
    fenced_add(&world, &new).await.unwrap();
    assert_eq!(balance(&world).await, 102);
    // This is in a transaction, because a pooler may give another session to each statement.
    let mut tx = world.store().pool().begin().await.unwrap();
    H::add(&mut *tx, 1).await.unwrap();
    assert_eq!(H::balance(&mut *tx).await, 103);
    tx.commit().await.unwrap();
}

/// A refused begin holds up neither its connection nor another one.
pub(crate) async fn a_refused_begin_leaves_a_usable_connection<H: SqlHarness>() {
    let (world, old) = claimed::<H>().await;
    let new = grant("account:42", 34);
    world.store().claim(&new).await.unwrap();
    let store = world.store_of_one().await;
    for expected in 101..=103 {
        assert!(store.begin(&old).await.unwrap_err().is_fenced());
        let mut connection = store.pool().acquire().await.unwrap();
        H::add_by_itself(&mut connection, 1).await.unwrap();
        assert_eq!(balance(&world).await, expected);
    }
    let store = world.impatient().await;
    store.begin(&new).await.unwrap().commit().await.unwrap();
}

pub(crate) async fn duplicate_token_is_refused<H: Harness>() {
    let world: H = fresh().await;
    let (first, twin) = (grant("account:42", 33), grant("account:42", 33));
    world.store().claim(&first).await.unwrap();
    for error in [
        world.store().claim(&twin).await.unwrap_err(),
        world.store().begin(&twin).await.unwrap_err(),
    ] {
        assert!(error.is_fenced() && !error.is_retryable());
        match error {
            FenceError::DuplicateToken {
                resource,
                presented,
                ..
            } => {
                assert_eq!((resource.as_str(), presented.get()), ("account:42", 33));
            }
            other => panic!("{other:?}"),
        }
    }
    fenced_add(&world, &first).await.unwrap();
}

/// A grant cannot begin before its claim, even if its token is above the mark: otherwise the
/// delayed begin of a stale holder would claim, too.
pub(crate) async fn unclaimed_grant_cannot_begin<H: Harness>() {
    let world: H = fresh().await;
    let early = grant("account:42", 33);
    let refused = |error| match error {
        FenceError::NotClaimed { presented, .. } => presented == early.token(),
        _ => false,
    };
    assert!(refused(world.store().begin(&early).await.unwrap_err()));
    world.store().claim(&grant("account:42", 32)).await.unwrap();
    assert!(refused(world.store().begin(&early).await.unwrap_err()));
    assert_eq!(high_water(&world, "account:42").await, Some(32));
    assert_eq!(balance(&world).await, 100);
}

pub(crate) async fn mark_survives_rollback_and_drop<H: Harness>() {
    let (world, old) = claimed::<H>().await;
    let new = grant("account:42", 34);
    world.store().claim(&new).await.unwrap();

    let mut tx = world.store().begin(&new).await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    tx.rollback().await.unwrap();
    let mut tx = world.store().begin(&new).await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    drop(tx);

    assert_eq!(high_water(&world, "account:42").await, Some(34));
    assert!(world.store().begin(&old).await.unwrap_err().is_fenced());
    fenced_add(&world, &new).await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// A name of a resource may contain characters that mean something in SQL, in JSON or in a format
/// string.
/// Catches: a name that becomes a part of a statement.
pub(crate) async fn hostile_names_are_names<H: Harness>() {
    let world: H = fresh().await;
    let names = [
        "'",
        "''",
        "a');DROP/**/TABLE/**/accounts;--",
        "'||(SELECT/**/1)||'",
        "$1",
        "?",
        ":name",
        "%s%n%",
        "{}",
        "$$",
        "--",
        ";COMMIT;",
        "E'",
        &"x".repeat(ResourceName::MAX_LEN),
        &"'".repeat(ResourceName::MAX_LEN),
    ];
    for name in names {
        let (old, new) = (grant(name, 33), grant(name, 34));
        world.store().claim(&old).await.unwrap();
        fenced_add(&world, &old).await.unwrap();
        world.store().claim(&new).await.unwrap();
        match world.store().begin(&old).await.unwrap_err() {
            FenceError::Stale { resource, .. } => assert_eq!(resource.as_str(), name),
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(high_water(&world, name).await, Some(34), "{name}");
    }
    assert_eq!(balance(&world).await, 115);
}

/// A database failover may lose a claim. Its holder must not simply claim again, because a newer
/// claim may be lost, too.
pub(crate) async fn a_mark_that_the_store_forgot_is_lost<H: SqlHarness>() {
    let (world, accounts) = protected_by::<H>(forgetful().await).await;
    let guard = accounts.acquire("account:42").await.unwrap();
    world.delete_mark(guard.resource()).await;
    let error = world.store().begin(guard.sequencer()).await.unwrap_err();
    assert_kind!(error, NotClaimed);
    let error = guard.begin().await.unwrap_err();
    assert_kind!(error, MarkLost);
    assert!(error.is_fenced());
    assert_eq!(
        high_water(&world, "account:42").await,
        None,
        "a begin never claims"
    );
}

/// Savepoints are rolled back after a failed statement, and inside each other.
/// Catches: an inner savepoint that outlives the outer one, or has its name.
pub(crate) async fn a_rolled_back_savepoint_takes_those_inside_with_it<H: SqlHarness>() {
    let (world, grant) = claimed::<H>().await;

    let mut tx = world.store().begin(&grant).await.unwrap();
    let mut outer = tx.begin().await.unwrap();
    H::add(&mut outer, 1).await.unwrap();
    let mut kept = outer.begin().await.unwrap();
    H::add(&mut kept, 10).await.unwrap();
    kept.commit().await.unwrap();
    let mut dropped = outer.begin().await.unwrap();
    H::add(&mut dropped, 100).await.unwrap();
    drop(dropped);
    outer.rollback().await.unwrap();
    H::add(&mut tx, 1000).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 1100);
}
