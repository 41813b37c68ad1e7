//! Whom a claim that has waited for its lock timeout ends, and whom it does not.

use std::time::Duration;

use fenced_store::{FenceError, PgFencedStore, PgTxOptions};
use lock_core::{Sequencer, metric::TERMINATIONS};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use crate::{
    roles::Roles,
    rule::{Harness, balance, fresh, grant},
    server::PostgresServer,
};

/// A store that ends older holders after 100 ms.
fn impatient(store: &PgFencedStore) -> PgFencedStore {
    let options = PgTxOptions::default().lock_timeout(Some(Duration::from_millis(100)));
    store.clone().with_options(options)
}

/// What a claim of this grant does after its lock timeout.
async fn terminate_older(store: &PgFencedStore, claim: &Sequencer) -> Vec<i32> {
    sqlx::query_scalar("SELECT fenced.terminate_older($1, $2, $3)")
        .bind(claim.resource().as_str())
        .bind(i64::from(claim.token()))
        .bind(claim.issuer().as_str())
        .fetch_one(store.pool())
        .await
        .unwrap()
}

/// How many sessions were ended, as an alarm would learn it.
fn ended(recorder: &DebuggingRecorder) -> u64 {
    let exported = recorder.snapshotter().snapshot().into_vec();
    let counted = exported
        .into_iter()
        .find(|(key, ..)| key.key().name() == TERMINATIONS.name);
    match counted {
        Some((.., DebugValue::Counter(times))) => times,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_holder_inside_a_transaction_is_ended_and_told_so() {
    let recorder = DebuggingRecorder::new();
    let _local = metrics::set_default_local_recorder(&recorder);
    let world: PostgresServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&old).await.unwrap();
    let mut open = world.store().begin(&old).await.unwrap();
    PostgresServer::add(&mut open, 1).await.unwrap();
    impatient(world.store()).claim(&new).await.unwrap();

    let error: FenceError = PostgresServer::add(&mut open, 1).await.unwrap_err().into();
    assert!(matches!(error, FenceError::Terminated { .. }), "{error:?}");
    open.commit().await.unwrap_err();
    assert_eq!(balance(&world).await, 100);
    assert_eq!(ended(&recorder), 1);
}

/// It gives up at once, without a look at anybody's session.
#[tokio::test]
async fn a_stale_claim_ends_nobody() {
    let world: PostgresServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&new).await.unwrap();
    let mut open = world.store().begin(&new).await.unwrap();
    let stale = impatient(world.store()).claim(&old).await.unwrap_err();
    assert!(matches!(stale, FenceError::Stale { .. }), "{stale:?}");
    PostgresServer::add(&mut open, 1).await.unwrap();
    open.commit().await.unwrap();
}

/// When the time comes to end somebody, a newer holder may have got in: it is not ended, and nor is
/// who has the same grant.
#[tokio::test]
async fn a_claim_that_became_stale_while_it_waited_ends_nobody() {
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

/// Nor are those that work on something else, be it a resource of that name in another database.
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

/// A claim of the grant that is there already waits for its own transactions: to end them would be
/// to end a live holder's.
#[tokio::test]
async fn a_replayed_claim_ends_nobody() {
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    let open = world.store().begin(&grant).await.unwrap();
    let busy = impatient(world.store()).claim(&grant).await.unwrap_err();
    assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
    open.commit().await.unwrap();
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

    let claimant = impatient(&roles.store_of("app").await);
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
