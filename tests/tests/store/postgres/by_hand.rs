//! The functions of the rule, called from another language or by hand.

use e2e::documented::example_for;
use fenced_store::FenceError;
use lock_core::Sequencer;
use sqlx::{AssertSqlSafe, Executor};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, fresh, grant},
};

/// A grant as the functions take it, with the digest that the mark shows, or another one.
fn arguments(grant: &Sequencer, digest: &str) -> String {
    format!("'{}', {}, '{digest}'", grant.resource(), grant.token())
}

/// The calls that need a transaction which has entered.
fn calls(grant: &Sequencer, digest: &str) -> [String; 2] {
    let grant = arguments(grant, digest);
    [
        format!("SELECT fenced.in_order({grant}, 7)"),
        format!("SELECT fenced.record({grant}, 'redis', 'by hand')"),
    ]
}

/// Nothing is numbered, and nothing audited, that has not entered: neither outside a transaction,
/// nor after another resource, nor in the name of another holder.
#[tokio::test]
async fn numbers_and_audit_are_for_those_who_have_entered() {
    let world: PostgresServer = fresh().await;
    let (ours, other) = (grant("account:42", 33), grant("account:43", 5));
    world.store().claim(&ours).await.unwrap();
    world.store().claim(&other).await.unwrap();
    let digest = ours.holder().digest();
    let before = world.dump().await;
    for call in calls(&ours, &digest) {
        let refused = world
            .store()
            .pool()
            .execute(AssertSqlSafe(call.clone()))
            .await;
        let refused = FenceError::from(refused.unwrap_err());
        assert!(
            matches!(refused, FenceError::Unfenced { .. }),
            "{call}: {refused:?}"
        );
    }
    for (entered, holder) in [(&other, digest.as_str()), (&ours, "somebody else")] {
        for call in calls(&ours, holder) {
            let mut tx = world.store().begin(entered).await.unwrap();
            let refused = tx.execute(AssertSqlSafe(call.clone())).await.unwrap_err();
            let refused = FenceError::from(refused);
            assert!(
                matches!(refused, FenceError::Unfenced { .. }),
                "{call}: {refused:?}"
            );
        }
    }
    assert_eq!(world.dump().await, before);

    let mut tx = world.store().begin(&ours).await.unwrap();
    for call in calls(&ours, &digest) {
        tx.execute(AssertSqlSafe(call)).await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(world.audit().await.len(), 1);
    let again = world.store().begin(&ours).seq(7).await.unwrap_err();
    assert!(
        matches!(again, FenceError::OutOfOrder { last: 7, .. }),
        "{again:?}"
    );
}

/// A client of a gateway has the holder itself, and the mark shows its digest.
#[tokio::test]
async fn who_has_a_lease_of_a_gateway_enters_as_documented() {
    let world: PostgresServer = fresh().await;
    let lease = grant("account:42", 33);
    world.store().claim(&lease).await.unwrap();
    let enter = async |statement: &str| {
        let enter = sqlx::query(AssertSqlSafe(statement.to_owned()))
            .bind(lease.resource().as_str())
            .bind(i64::from(lease.token()))
            .bind(lease.holder().expose())
            .bind(lease.issuer().as_str());
        let entered = enter.execute(world.store().pool()).await;
        entered.map_err(FenceError::from)
    };
    enter(&example_for("lease")).await.unwrap();
    // The control.
    let refused = enter("SELECT fenced.enter($1, $2, $3, $4)").await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, FenceError::DuplicateToken { .. }),
        "{refused:?}"
    );
}

/// The fence of a transaction ends with it, for these calls too.
#[tokio::test]
async fn what_was_entered_before_does_not_count() {
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    let pool = world.pool_of_one().await;
    let store = fenced_store::FencedStore::new(pool.clone());
    store.begin(&grant).await.unwrap().commit().await.unwrap();
    for call in calls(&grant, &grant.holder().digest()) {
        let refused = pool.execute(AssertSqlSafe(call)).await.unwrap_err();
        let refused = FenceError::from(refused);
        assert!(
            matches!(refused, FenceError::Unfenced { .. }),
            "{refused:?}"
        );
    }
}

/// A transaction that has looked around before it enters may have a picture older than the newest
/// claim. It is refused at every level, and not by that picture.
#[tokio::test]
async fn who_enters_with_an_old_snapshot_is_refused() {
    let levels = [
        ("READ COMMITTED", "FN001"),
        ("REPEATABLE READ", "40001"),
        ("SERIALIZABLE", "40001"),
    ];
    for (level, code) in levels {
        let world: PostgresServer = fresh().await;
        let (old, new) = (grant("account:42", 33), grant("account:42", 34));
        world.store().claim(&old).await.unwrap();
        let mut tx = world.store().pool().begin().await.unwrap();
        let look = format!(
            "SET TRANSACTION ISOLATION LEVEL {level}; SELECT fenced.high_water('account:42')"
        );
        tx.execute(AssertSqlSafe(look)).await.unwrap();
        world.store().claim(&new).await.unwrap();
        let old = arguments(&old, &old.holder().digest());
        let enter = format!("SELECT fenced.enter({old}, 'redis')");
        let refused = tx.execute(AssertSqlSafe(enter)).await.unwrap_err();
        let refused = refused.into_database_error().unwrap();
        assert_eq!(refused.code().as_deref(), Some(code), "{level}: {refused}");
    }
}
