//! Writes of one statement.

use fenced_store::FenceError;

use super::{SqlHarness, assert_kind, balance, claimed, fresh, grant, grant_by, high_water};

/// An account that does not exist.
const NOBODYS: i64 = 43;

pub(crate) async fn single_write_is_stored_and_has_a_receipt<H: SqlHarness>() {
    let (world, grant) = claimed::<H>().await;
    for expected in [107, 114] {
        let done = H::add_at_once(world.store(), &grant, 42, 7).await.unwrap();
        assert_eq!(done.rows_affected(), 1);
        let receipt = done.receipt();
        assert_eq!(
            (receipt.resource(), receipt.token()),
            (grant.resource(), grant.token())
        );
        assert_eq!(balance(&world).await, expected);
    }
}

/// The refusal is the same whether or not the statement would have matched a row: "stale" is never
/// "0 rows".
pub(crate) async fn single_write_of_a_stale_holder_is_refused<H: SqlHarness>() {
    let (world, old) = claimed::<H>().await;
    let new = grant("account:42", 34);
    world.store().claim(&new).await.unwrap();
    for account in [42, NOBODYS] {
        let refused = H::add_at_once(world.store(), &old, account, 1).await;
        match refused.unwrap_err() {
            FenceError::Stale {
                presented,
                high_water,
                ..
            } => assert_eq!((presented.get(), high_water.get()), (33, 34)),
            other => panic!("{other:?}"),
        }
        let done = H::add_at_once(world.store(), &new, account, 1).await;
        assert_eq!(done.unwrap().rows_affected(), u64::from(account == 42));
    }
    assert_eq!(balance(&world).await, 101);
}

pub(crate) async fn single_write_of_other_grants_is_refused<H: SqlHarness>() {
    let (world, _) = claimed::<H>().await;
    let twin = H::add_at_once(world.store(), &grant("account:42", 33), 42, 1).await;
    assert!(matches!(twin, Err(FenceError::DuplicateToken { .. })));
    let early = H::add_at_once(world.store(), &grant("account:42", 34), 42, 1).await;
    assert!(matches!(early, Err(FenceError::NotClaimed { .. })));
    let foreign = H::add_at_once(world.store(), &grant_by("etcd", "account:42", 33), 42, 1).await;
    assert!(matches!(foreign, Err(FenceError::WrongIssuer { .. })));
    let unknown = H::add_at_once(world.store(), &grant("account:43", 1), NOBODYS, 1).await;
    assert!(matches!(unknown, Err(FenceError::NotClaimed { .. })));
    assert_eq!(balance(&world).await, 100);
    assert_eq!(high_water(&world, "account:42").await, Some(33));
}

/// The user gets the error of the statement, and the next write succeeds.
pub(crate) async fn single_write_that_fails_stores_nothing<H: SqlHarness>() {
    let (world, grant) = claimed::<H>().await;
    for _ in 0..3 {
        let clash = "INSERT INTO accounts (id, balance) VALUES (44, 1), (42, 1)";
        match world
            .store()
            .begin(&grant)
            .execute(sqlx::raw_sql(clash))
            .await
            .unwrap_err()
        {
            FenceError::Db { source } => {
                let error = source.as_database_error().unwrap();
                assert!(error.is_unique_violation(), "{error:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    let deleted = "DELETE FROM accounts WHERE id = 44";
    let deleted = world.store().begin(&grant).execute(sqlx::raw_sql(deleted));
    assert_eq!(deleted.await.unwrap().rows_affected(), 0);
    assert_eq!(balance(&world).await, 100);
}

/// All resources are checked, and all are in the receipt.
pub(crate) async fn single_write_may_enter_several_resources<H: SqlHarness>() {
    let world: H = fresh().await;
    let (one, other) = (grant("account:43", 5), grant("account:42", 33));
    world.store().claim(&one).await.unwrap();
    world.store().claim(&other).await.unwrap();
    let write = "UPDATE accounts SET balance = balance + 1";
    let both = world.store().begin(&one).and(&other);
    let done = both.execute(write).await.unwrap();
    let entered: Vec<_> = done.receipt().resources().collect();
    assert_eq!(
        entered,
        [
            (one.resource(), one.token()),
            (other.resource(), other.token())
        ]
    );
    world.store().claim(&grant("account:42", 34)).await.unwrap();
    let both = world.store().begin(&one).and(&other);
    let error = both.execute(write).await.unwrap_err();
    assert_kind!(error, Stale);
    assert_eq!(error.resource(), Some(other.resource()));
    assert_eq!(balance(&world).await, 101);
}
