//! The sessions that a claim ends after its lock timeout, and the sessions that it leaves open.

use e2e::servers::DatabaseServer;
use fenced_store::{FenceError, PgFencedStore};
use lock_core::Sequencer;
use sqlx::{Executor, PgPool};

use crate::{
    postgres::{
        roles::Roles,
        server::{PostgresServer, soon},
    },
    rule::{Harness, balance, fresh, grant},
};

/// The step of a claim of this grant after its lock timeout.
async fn terminate_older(store: &PgFencedStore, claim: &Sequencer) -> Vec<i32> {
    sqlx::query_scalar("SELECT fenced.terminate_older($1, $2, $3)")
        .bind(claim.resource().as_str())
        .bind(i64::from(claim.token()))
        .bind(claim.issuer().as_str())
        .fetch_one(store.pool())
        .await
        .unwrap()
}

/// When sessions are ended, a newer holder may have claimed. Its session is not ended, and neither
/// is that of a holder with the same grant.
#[tokio::test]
async fn a_claim_that_became_stale_while_it_waited_ends_no_session() {
    let world: PostgresServer = fresh().await;
    let live = grant("account:42", 35);
    world.store().claim(&live).await.unwrap();
    let open = world.store().begin(&live).await.unwrap();
    for token in [33, 34, 35] {
        let late = grant("account:42", token);
        let ended = terminate_older(world.store(), &late).await;
        assert!(ended.is_empty(), "{token} ended {ended:?}");
    }
    let foreign = crate::rule::grant_by("etcd", "account:42", 36);
    let ended = terminate_older(world.store(), &foreign).await;
    assert!(ended.is_empty(), "another lock service ended {ended:?}");
    open.commit().await.unwrap();
}

/// Sessions that work on another resource are not ended, even if it has the same name in another
/// database.
#[tokio::test]
async fn only_transactions_of_the_claimed_resource_are_ended() {
    let (world, elsewhere): (PostgresServer, PostgresServer) = (fresh().await, fresh().await);
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let other = grant("account:43", 33);
    for (store, grant) in [
        (world.store(), &old),
        (world.store(), &other),
        (elsewhere.store(), &old),
    ] {
        store.claim(grant).await.unwrap();
    }
    let in_the_way = world.store().begin(&old).await.unwrap();
    let of_another = world.store().begin(&other).await.unwrap();
    let in_another = elsewhere.store().begin(&old).await.unwrap();
    let ended = terminate_older(world.store(), &new).await;
    assert_eq!(ended.len(), 1);
    in_the_way.commit().await.unwrap_err();
    of_another.commit().await.unwrap();
    in_another.commit().await.unwrap();
}

#[tokio::test]
async fn a_session_of_another_role_is_ended_only_with_the_right_to() {
    let roles = Roles::as_documented().await;
    roles
        .as_admin(
            "CREATE ROLE legacy LOGIN PASSWORD 'sesame';
             GRANT USAGE ON SCHEMA fenced TO legacy; GRANT ALL ON accounts TO legacy",
        )
        .await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let legacy = roles.store_of("legacy").await;
    legacy.claim(&old).await.unwrap();
    let mut open = legacy.begin(&old).await.unwrap();

    let claimant = roles.store_of("app").await.with_options(soon());
    match claimant.claim(&new).await.unwrap_err() {
        FenceError::Busy { source } => {
            let source = source.to_string();
            assert!(source.contains("session of another role"), "{source}");
            assert!(source.contains("account:42"), "{source}");
        }
        other => panic!("{other:?}"),
    }
    PostgresServer::add(&mut open, 1).await.unwrap();

    roles.as_admin("GRANT legacy TO app").await;
    claimant.claim(&new).await.unwrap();
    open.commit().await.unwrap_err();
    assert_eq!(balance(&roles.world).await, 100);
}

/// A prepared transaction has no session that could be ended: its owner has to decide.
#[tokio::test]
async fn a_prepared_transaction_is_named_and_waited_for() {
    let server = DatabaseServer::postgres(&["max_prepared_transactions=2"]).await;
    let pool = PgPool::connect(server.url()).await.unwrap();
    pool.execute("CREATE TABLE journal (number integer)")
        .await
        .unwrap();
    let store = PgFencedStore::new(pool.clone()).with_options(soon());
    store.migrate().await.unwrap();
    let written = async || {
        let rows = sqlx::query_scalar("SELECT count(*) FROM journal");
        let rows: i64 = rows.fetch_one(&pool).await.unwrap();
        rows
    };
    for (round, decision, rows) in [(1, "COMMIT", 1), (2, "ROLLBACK", 1)] {
        let old = grant("account:42", 2 * round);
        let new = grant("account:42", 2 * round + 1);
        store.claim(&old).await.unwrap();
        let mut tx = store.begin(&old).await.unwrap();
        tx.execute("INSERT INTO journal VALUES (1)").await.unwrap();
        tx.execute("PREPARE TRANSACTION 'limbo'").await.unwrap();
        // The client does not learn of the end of the transaction that it has prepared, so there is
        // no receipt.
        assert!(tx.commit().await.is_err());
        match store.claim(&new).await.unwrap_err() {
            FenceError::Busy { source } => {
                let source = source.to_string();
                assert!(source.contains("a prepared transaction"), "{source}");
                assert!(source.contains("account:42"), "{source}");
            }
            other => panic!("{other:?}"),
        }
        let decide = sqlx::AssertSqlSafe(format!("{decision} PREPARED 'limbo'"));
        pool.execute(decide).await.unwrap();
        store.claim(&new).await.unwrap();
        assert_eq!(written().await, rows, "{decision}");
    }
}
