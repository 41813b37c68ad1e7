//! The functions of the rule, called from another language or by hand.

use e2e::documented::example_for;
use fenced_store::FenceError;
use lock_core::Sequencer;
use sqlx::{AssertSqlSafe, Executor};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, assert_kind, claimed, fresh, grant},
};

/// The arguments of the functions for a grant, with the digest that the mark shows, or another
/// digest.
fn arguments(grant: &Sequencer, digest: &str) -> String {
    format!("'{}', {}, '{digest}'", grant.resource(), grant.token())
}

/// A client of a gateway has the holder itself, and the mark shows its digest.
#[tokio::test]
async fn a_client_with_a_lease_of_a_gateway_begins_as_documented() {
    let (world, lease) = claimed::<PostgresServer>().await;
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
    let refused = enter("SELECT fenced.begin_fenced($1, $2, $3, $4)").await;
    let refused = refused.unwrap_err();
    assert_kind!(refused, DuplicateToken);
}

/// A transaction that has read before it enters may have a snapshot that is older than the newest
/// claim. It is refused at every isolation level, and the check does not use that snapshot.
/// Catches: a fence that trusts the snapshot of its transaction.
#[tokio::test]
async fn a_begin_with_an_old_snapshot_is_refused() {
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
        let enter = format!("SELECT fenced.begin_fenced({old}, 'redis')");
        let refused = tx.execute(AssertSqlSafe(enter)).await.unwrap_err();
        let refused = refused.into_database_error().unwrap();
        assert_eq!(refused.code().as_deref(), Some(code), "{level}: {refused}");
    }
}
