//! What else goes on around a fenced transaction: roles, shadowed functions, other fences.

use std::mem;

use fenced_store::FenceError;
use sqlx::{AssertSqlSafe, Executor};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, balance, fresh, grant, high_water},
};

/// Runs statements as a role of this database that may do what they need, and nothing else.
async fn as_role(world: &PostgresServer, may: &str, statements: &str) {
    let pool = world.store().pool();
    let role: String = sqlx::query_scalar("SELECT 'role_' || current_database()")
        .fetch_one(pool)
        .await
        .unwrap();
    let script = format!(
        "DROP ROLE IF EXISTS {role}; CREATE ROLE {role}; GRANT {may} TO {role};
         SET LOCAL ROLE {role}; {statements}"
    );
    pool.execute(sqlx::raw_sql(AssertSqlSafe(script)))
        .await
        .unwrap();
}

/// A role without any right in our schema.
#[tokio::test]
async fn a_transaction_that_changed_its_role_can_commit() {
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    as_role(&world, "ALL ON accounts", "SELECT 1").await;

    let mut tx = world.store().begin(&grant).await.unwrap();
    tx.execute("DO $$ BEGIN EXECUTE 'SET LOCAL ROLE role_' || current_database(); END $$")
        .await
        .unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);

    // One that is over is still told from one that is not.
    let mut tx = world.store().begin(&grant).await.unwrap();
    let end = "ROLLBACK; BEGIN;
        DO $$ BEGIN EXECUTE 'SET LOCAL ROLE role_' || current_database(); END $$";
    tx.execute(end).await.unwrap();
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, FenceError::Aborted), "{error:?}");
}

/// Functions that fit our arguments better than those of the catalog, in a schema that everybody
/// has in their search path.
#[tokio::test]
async fn shadowed_functions_are_not_called() {
    let world: PostgresServer = fresh().await;
    let script = "
        CREATE FUNCTION public.hashtextextended(t text, seed int) RETURNS bigint
        LANGUAGE sql AS $$ SELECT 7::bigint $$;
        CREATE FUNCTION public.json_build_object(a text, b text, c text, d bigint, e text, f bigint)
        RETURNS json LANGUAGE sql AS $$ SELECT '{}'::json $$";
    as_role(&world, "CREATE, USAGE ON SCHEMA public", script).await;

    let store = world.impatient().await;
    let (one, other) = (grant("account:42", 33), grant("account:43", 34));
    store.claim(&one).await.unwrap();
    let open = store.begin(&one).await.unwrap();
    // All resources would share one lock.
    store.claim(&other).await.unwrap();
    open.rollback().await.unwrap();
    // The detail of a refusal would be somebody else's.
    let stale = store.claim(&grant("account:42", 32)).await.unwrap_err();
    assert!(matches!(stale, FenceError::Stale { .. }), "{stale:?}");
}

/// The fence of the transaction itself is the one that its commit asks for.
#[tokio::test]
async fn a_second_fence_in_one_transaction_is_allowed() {
    let world: PostgresServer = fresh().await;
    let (one, other) = (grant("account:42", 33), grant("account:43", 40));
    world.store().claim(&one).await.unwrap();
    world.store().claim(&other).await.unwrap();
    let mut tx = world.store().begin(&one).await.unwrap();
    sqlx::query("SELECT fenced.begin_fenced('account:43', 40, $1, 'redis')")
        .bind(other.holder().digest())
        .execute(&mut *tx)
        .await
        .unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// Two transactions with the same token, on each other's connection.
#[tokio::test]
async fn a_receipt_is_for_the_resource_that_was_entered() {
    let world: PostgresServer = fresh().await;
    let (one, other) = (grant("account:42", 33), grant("account:43", 33));
    world.store().claim(&one).await.unwrap();
    world.store().claim(&other).await.unwrap();
    let mut tx = world.store().begin(&one).await.unwrap();
    let mut second = world.store().begin(&other).await.unwrap();
    mem::swap(&mut *tx, &mut *second);
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, FenceError::Aborted), "{error:?}");
    second.rollback().await.unwrap();
}

/// What SQL accepts, clients can read.
#[tokio::test]
async fn names_that_no_client_can_read_are_refused() {
    let world: PostgresServer = fresh().await;
    for (resource, issuer) in [
        ("two words", "redis"),
        ("quote\"", "redis"),
        ("back\\slash", "redis"),
        ("", "redis"),
        ("account:42\n", "redis"),
        ("account:42", "my lock"),
        ("account:42", ""),
    ] {
        let error = sqlx::query("SELECT fenced.claim($1, 1, 'holder', $2)")
            .bind(resource)
            .bind(issuer)
            .execute(world.store().pool())
            .await
            .unwrap_err();
        let error = error.as_database_error().unwrap();
        assert!(error.is_check_violation(), "{resource:?} {issuer:?}");
    }
    for resource in ["!", "#", "[", "]", "~", "a^b-c"] {
        world.store().claim(&grant(resource, 1)).await.unwrap();
        assert_eq!(high_water(&world, resource).await, Some(1));
    }
}
