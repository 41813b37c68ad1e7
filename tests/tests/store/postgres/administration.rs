//! Functions for administrators only, and how they delay claims.

use std::pin::pin;

use fenced_store::{
    FenceError,
    admin::{AdminError, HandoverError, HandoverPhase, Reason, Reset},
};
use lock_core::ResourceName;
use sqlx::Executor;

use crate::{
    postgres::{
        roles::{Roles, documented, renamed},
        server::PostgresServer,
    },
    rule::{
        Harness, SqlHarness, claimed, fresh, grant, hand_over, high_water, issuer, order,
        sealed_at, service, token, tried,
    },
};

/// A claim of the old service that was first is sealed, too, so no such claim remains valid.
#[tokio::test]
async fn a_seal_waits_for_the_claims_under_way() {
    let (world, _) = claimed::<PostgresServer>().await;
    let mut claim = world.store().pool().begin().await.unwrap();
    claim
        .execute("SELECT fenced.claim('account:43', 34, 'somebody', 'redis')")
        .await
        .unwrap();
    let order = order("redis", &service("etcd"));
    let seal = pin!(tried(world.store(), &order));
    let committed = async {
        world.until_queued(1).await;
        claim.commit().await.unwrap();
    };
    let (sealed, ()) = tokio::join!(seal, committed);
    let done = sealed.unwrap();
    assert_eq!(done.sealed, 2);
    assert_eq!(high_water(&world, "account:43").await, sealed_at(&done));
}

/// A paused claim does not hold up the seal for ever: the seal fails, and nothing was changed.
#[tokio::test]
async fn a_seal_waits_for_a_claim_no_longer_than_the_lock_timeout() {
    let (world, _) = claimed::<PostgresServer>().await;
    let mut claim = world.store().pool().begin().await.unwrap();
    claim
        .execute("SELECT fenced.claim('account:43', 34, 'somebody', 'redis')")
        .await
        .unwrap();
    let order = order("redis", &service("etcd"));
    let impatient = world.impatient().await;
    match tried(&impatient, &order).await.unwrap_err() {
        HandoverError::Store {
            phase: HandoverPhase::Before,
            source: AdminError::Store(FenceError::Busy { .. }),
            ..
        } => {}
        other => panic!("{other:?}"),
    }
    let present = impatient.admin().issuer().await.unwrap();
    assert_eq!(present, Some(issuer("redis")));
    claim.commit().await.unwrap();
    assert_eq!(tried(&impatient, &order).await.unwrap().sealed, 2);
}

/// An open transaction holds up only its own mark.
#[tokio::test]
async fn a_seal_goes_on_past_a_statement_timeout() {
    let world: PostgresServer = fresh().await;
    let held = grant("account:1", 33);
    world.store().claim(&held).await.unwrap();
    world.store().claim(&grant("account:2", 34)).await.unwrap();
    let open = world.store().begin(&held).await.unwrap();
    let store = world.store_with(&[("statement_timeout", "300ms")]).await;
    let order = order("redis", &service("etcd"));
    match tried(&store, &order).await.unwrap_err() {
        HandoverError::Unfinished {
            sealed: 1,
            source: FenceError::Terminated { .. },
            ..
        } => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(high_water(&world, "account:1").await, Some(33));
    assert!(high_water(&world, "account:2").await > Some(34));
    open.commit().await.unwrap();
    assert_eq!(tried(&store, &order).await.unwrap().sealed, 1);
}

/// A mark is sealed only after the issuer was changed, so that no claim of the old service follows.
#[tokio::test]
async fn a_mark_cannot_be_sealed_before_the_issuer() {
    let (world, _) = claimed::<PostgresServer>().await;
    let before = world.dump().await;
    let too_early = "SELECT fenced.seal_mark('account:42', 'redis', 'etcd', 1000, 'moved')";
    let error = world.store().pool().execute(too_early).await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "FN021");
    assert_eq!(world.dump().await, before);
}

/// In psql the direction has to be given, too.
#[tokio::test]
async fn a_mark_is_not_lowered_by_mistake_from_sql() {
    let (world, _) = claimed::<PostgresServer>().await;
    let pool = world.store().pool();
    for (mistake, code) in [
        ("33, 32, 'why'", "22023"),
        ("33, 33, 'why'", "22023"),
        ("33, 34, 'why', true", "22023"),
        ("32, 31, 'why', true", "FN020"),
        ("33, 34, ' '", "23514"),
    ] {
        let call = format!("SELECT fenced.reset_high_water('account:42', {mistake})");
        let error = pool.execute(sqlx::AssertSqlSafe(call)).await.unwrap_err();
        let error = error.as_database_error().unwrap();
        assert_eq!(error.code().unwrap(), code, "{mistake}: {error}");
    }
    assert_eq!(high_water(&world, "account:42").await, Some(33));
    pool.execute("SELECT fenced.reset_high_water('account:42', 33, 32, 'why', lowering => true)")
        .await
        .unwrap();
    assert_eq!(high_water(&world, "account:42").await, Some(32));
    let stale = world.store().begin(&grant("account:42", 32)).await;
    assert!(
        matches!(stale, Err(FenceError::DuplicateToken { .. })),
        "{stale:?}"
    );
}

/// The operator has no right on the marks themselves. The log has the role's name.
#[tokio::test]
async fn the_documented_rights_are_enough_for_an_operator() {
    let roles = Roles::as_documented().await;
    let store = roles.store_of("app").await;
    store.claim(&grant("account:42", 33)).await.unwrap();
    let [.., operator] = documented();
    roles
        .as_admin("CREATE ROLE operator LOGIN PASSWORD 'sesame'")
        .await;
    roles.as_admin(&operator).await;
    let operator = roles.store_of("operator").await;
    let name = ResourceName::new("account:42").unwrap();
    let why = Reason::new("poisoned").unwrap();
    let order = Reset::raise(name, token(33), token(40), why).unwrap();
    operator.admin().reset_high_water(&order).await.unwrap();
    let done = hand_over(&operator, "redis", &service("etcd")).await;
    assert_eq!(done.sealed, 1);

    let who: Vec<String> = sqlx::query_scalar("SELECT done_by FROM fenced.admin_log")
        .fetch_all(operator.pool())
        .await
        .unwrap();
    let operators = renamed("operator", &roles.database);
    assert_eq!(who, vec![operators; 3]);
    let marks = operator
        .pool()
        .execute("SELECT * FROM fenced.high_water_mark")
        .await;
    assert_eq!(
        marks
            .unwrap_err()
            .as_database_error()
            .unwrap()
            .code()
            .unwrap(),
        "42501"
    );
}
