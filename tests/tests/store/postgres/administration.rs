//! What only administrators may do, and how it stands in the way of claims.

use std::pin::pin;

use fenced_store::{
    FenceError, PgFencedStore,
    admin::{AdminError, Reason, Reset, Seal},
};
use lock_core::{Issuer, ResourceName};
use sqlx::Executor;

use crate::{
    postgres::{
        roles::{Roles, documented, renamed},
        server::PostgresServer,
    },
    rule::{Harness, fresh, grant, high_water, token},
};

/// A claim of the old service that was first is sealed, too: none is left behind.
#[tokio::test]
async fn a_seal_waits_for_the_claims_under_way() {
    let world: PostgresServer = fresh().await;
    world.store().claim(&grant("account:42", 33)).await.unwrap();
    let mut claim = world.store().pool().begin().await.unwrap();
    claim
        .execute("SELECT fenced.claim('account:43', 34, 'somebody', 'redis')")
        .await
        .unwrap();
    let issuer = |name| Issuer::new(name).unwrap();
    let reason = Reason::new("moved").unwrap();
    let order = Seal::new(issuer("redis"), issuer("etcd"), token(1000), reason).unwrap();
    let admin = world.store().admin();
    let seal = pin!(admin.seal(&order, |_, _| ()));
    let committed = async {
        world.until_queued(1).await;
        claim.commit().await.unwrap();
    };
    let (sealed, ()) = tokio::join!(seal, committed);
    assert_eq!(sealed.unwrap(), 2);
    assert_eq!(high_water(&world, "account:43").await, Some(1000));
}

/// A claim that is paused does not hold it up for ever, and then nothing was changed.
#[tokio::test]
async fn a_seal_waits_for_a_claim_no_longer_than_the_lock_timeout() {
    let world: PostgresServer = fresh().await;
    world.store().claim(&grant("account:42", 33)).await.unwrap();
    let mut claim = world.store().pool().begin().await.unwrap();
    claim
        .execute("SELECT fenced.claim('account:43', 34, 'somebody', 'redis')")
        .await
        .unwrap();
    let issuer = |name| Issuer::new(name).unwrap();
    let reason = Reason::new("moved").unwrap();
    let order = Seal::new(issuer("redis"), issuer("etcd"), token(1000), reason).unwrap();
    let impatient = world.impatient().await;
    let admin = impatient.admin();
    match admin.seal(&order, |_, _| ()).await.unwrap_err() {
        AdminError::Store(FenceError::Busy { .. }) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(admin.issuer().await.unwrap(), Some(issuer("redis")));
    claim.commit().await.unwrap();
    assert_eq!(admin.seal(&order, |_, _| ()).await.unwrap(), 2);
}

/// The transaction that is open holds up its own mark alone.
async fn a_seal_is_held_up(world: &PostgresServer, store: &PgFencedStore) -> FenceError {
    let held = grant("account:1", 33);
    world.store().claim(&held).await.unwrap();
    world.store().claim(&grant("account:2", 34)).await.unwrap();
    let open = world.store().begin(&held).await.unwrap();
    let issuer = |name| Issuer::new(name).unwrap();
    let reason = Reason::new("moved").unwrap();
    let order = Seal::new(issuer("redis"), issuer("etcd"), token(1000), reason).unwrap();
    let source = match store.admin().seal(&order, |_, _| ()).await.unwrap_err() {
        AdminError::Unfinished {
            sealed: 1, source, ..
        } => source,
        other => panic!("{other:?}"),
    };
    assert_eq!(high_water(world, "account:1").await, Some(33));
    assert_eq!(high_water(world, "account:2").await, Some(1000));
    open.commit().await.unwrap();
    assert_eq!(store.admin().seal(&order, |_, _| ()).await.unwrap(), 1);
    source
}

#[tokio::test]
async fn a_seal_goes_on_past_what_is_held_up() {
    let world: PostgresServer = fresh().await;
    let source = a_seal_is_held_up(&world, &world.impatient().await).await;
    assert!(matches!(source, FenceError::Busy { .. }), "{source:?}");
}

#[tokio::test]
async fn a_seal_goes_on_past_a_statement_timeout() {
    let world: PostgresServer = fresh().await;
    let store = world.store_with(&[("statement_timeout", "500ms")]).await;
    let source = a_seal_is_held_up(&world, &store).await;
    assert!(
        matches!(source, FenceError::Terminated { .. }),
        "{source:?}"
    );
}

/// Only behind the issuer, so that no claim of the old service follows.
#[tokio::test]
async fn a_mark_cannot_be_sealed_before_the_issuer() {
    let world: PostgresServer = fresh().await;
    world.store().claim(&grant("account:42", 33)).await.unwrap();
    let before = world.dump().await;
    let too_early = "SELECT fenced.seal_mark('account:42', 'redis', 'etcd', 1000, 'moved')";
    let error = world.store().pool().execute(too_early).await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "FN021");
    assert_eq!(world.dump().await, before);
}

/// From psql, where the direction is said, too.
#[tokio::test]
async fn a_mark_is_not_lowered_by_mistake_from_sql() {
    let world: PostgresServer = fresh().await;
    world.store().claim(&grant("account:42", 33)).await.unwrap();
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

/// Without any right on the marks themselves. What was done is signed with the role's name.
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
    let order = Reset::raise(name, token(33), token(40), why.clone()).unwrap();
    operator.admin().reset_high_water(&order).await.unwrap();
    let issuer = operator.admin().issuer().await.unwrap().unwrap();
    let order = Seal::new(issuer, Issuer::new("etcd").unwrap(), token(1000), why).unwrap();
    assert_eq!(operator.admin().seal(&order, |_, _| ()).await.unwrap(), 1);

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
