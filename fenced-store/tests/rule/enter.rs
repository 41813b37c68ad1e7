//! Who may begin, and what a transaction leaves behind.

use fenced_store::FenceError;
use lock_core::ResourceName;

use super::{
    Harness, balance, fenced_add, forgetful, fresh, grant, grant_by, high_water, protected_by,
};

/// What ends a transaction behind sqlx's back.
pub(crate) const ENDS: [&str; 4] = ["ROLLBACK", "COMMIT", "ROLLBACK; BEGIN", "COMMIT; BEGIN"];

/// A statement that ends the transaction gives up the fence; a receipt would be a lie.
pub(crate) async fn a_transaction_that_was_ended_inside_has_no_receipt<H: Harness>() {
    let world: H = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    let store = world.store_of_one().await;
    for statement in ENDS {
        let mut tx = store.begin(&grant).await.unwrap();
        H::execute(&mut tx, statement).await.unwrap();
        H::add_by_itself(&mut tx, 0).await.unwrap();
        let error = tx.commit().await.unwrap_err();
        assert!(
            matches!(error, FenceError::Aborted),
            "{statement}: {error:?}"
        );
    }
    let mut tx = store.begin(&grant).await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

pub(crate) async fn stale_holder_cannot_begin<H: Harness>() {
    let world: H = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&old).await.unwrap();
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
}

/// The control: without the fence the stale holder's write is stored, so the case above does test
/// the fence.
pub(crate) async fn unfenced_write_of_a_stale_holder_goes_through<H: Harness>() {
    let world: H = fresh().await;
    world.store().claim(&grant("account:42", 33)).await.unwrap();
    world.store().claim(&grant("account:42", 34)).await.unwrap();
    let mut connection = world.store().pool().acquire().await.unwrap();
    H::add(&mut connection, 1).await.unwrap();
    assert_eq!(H::balance(&mut connection).await, 101);
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

/// Neither a grant that nobody has claimed yet, nor one that is above the mark: a stale holder's
/// delayed begin must not claim by the way.
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

pub(crate) async fn resources_do_not_know_each_other<H: Harness>() {
    let world: H = fresh().await;
    let (low, high) = (grant("account:1", 5), grant("account:2", 500));
    world.store().claim(&high).await.unwrap();
    world.store().claim(&low).await.unwrap();
    fenced_add(&world, &low).await.unwrap();
    fenced_add(&world, &high).await.unwrap();
    let elsewhere = grant_by("redis", "account:3", 500);
    assert!(
        world
            .store()
            .begin(&elsewhere)
            .await
            .unwrap_err()
            .is_fenced()
    );
}

pub(crate) async fn fenced_write_is_visible_and_has_a_receipt<H: Harness>() {
    let world: H = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();

    let mut tx = world.store().begin(&grant).await.unwrap();
    H::add(&mut tx, -10).await.unwrap();
    assert_eq!(H::balance(&mut tx).await, 90);
    assert_eq!(balance(&world).await, 100, "not committed yet");
    let receipt = tx.commit().await.unwrap();
    assert_eq!(
        (receipt.resource(), receipt.token()),
        (grant.resource(), grant.token())
    );
    assert_eq!(balance(&world).await, 90);
}

pub(crate) async fn mark_survives_rollback_and_drop<H: Harness>() {
    let world: H = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&old).await.unwrap();
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

pub(crate) async fn savepoints_are_the_users<H: Harness>() {
    let world: H = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();

    let mut tx = world.store().begin(&grant).await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    let mut savepoint = tx.begin().await.unwrap();
    H::add(&mut savepoint, 10).await.unwrap();
    savepoint.rollback().await.unwrap();
    let mut savepoint = tx.begin().await.unwrap();
    H::add(&mut savepoint, 100).await.unwrap();
    savepoint.commit().await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 201);
}

/// What a resource may be called is not what SQL, JSON or a format string makes of it.
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

/// The row is never deleted by us. If somebody does, nobody is let in until the next claim.
pub(crate) async fn deleted_mark_admits_nobody<H: Harness>() {
    let world: H = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    world.delete_mark(grant.resource()).await;
    let error = world.store().begin(&grant).await.unwrap_err();
    assert!(matches!(error, FenceError::NotClaimed { .. }), "{error:?}");
}

/// A database failover may lose a claim. Whoever made it must not simply make it again: a newer one
/// may be lost, too.
pub(crate) async fn a_mark_that_the_store_forgot_is_lost<H: Harness>() {
    let (world, accounts) = protected_by::<H>(forgetful().await).await;
    let guard = accounts.acquire("account:42").await.unwrap();
    world.delete_mark(guard.resource()).await;
    let error = guard.begin().await.unwrap_err();
    assert!(matches!(error, FenceError::MarkLost { .. }), "{error:?}");
    assert!(error.is_fenced());
    assert_eq!(
        high_water(&world, "account:42").await,
        None,
        "a begin never claims"
    );
}

/// Also after a failed statement, and inside each other.
pub(crate) async fn a_rolled_back_savepoint_takes_those_inside_with_it<H: Harness>() {
    let world: H = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();

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

/// What was to become of its writes, nobody said.
pub(crate) async fn undecided_savepoint_cannot_be_committed<H: Harness>() {
    let world: H = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();

    let mut tx = world.store().begin(&grant).await.unwrap();
    let mut savepoint = tx.begin().await.unwrap();
    H::add(&mut savepoint, 1).await.unwrap();
    drop(savepoint);
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, FenceError::Aborted), "{error:?}");
    assert_eq!(balance(&world).await, 100);
    fenced_add(&world, &grant).await.unwrap();
}
