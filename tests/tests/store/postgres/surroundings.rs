//! Roles of a fenced transaction, and names that are made by hand.

use sqlx::{AssertSqlSafe, Executor};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, assert_kind, balance, claimed, fresh, grant, high_water},
};

/// The transaction changes to a role without any right in our schema.
/// Catches: a commit that needs a right which the transaction has given up.
#[tokio::test]
async fn a_transaction_that_changed_its_role_can_commit() {
    let (world, grant) = claimed::<PostgresServer>().await;
    let role: String = sqlx::query_scalar("SELECT 'role_' || current_database()")
        .fetch_one(world.store().pool())
        .await
        .unwrap();
    let script = format!("CREATE ROLE {role}; GRANT ALL ON accounts TO {role}");
    let script = sqlx::raw_sql(AssertSqlSafe(script));
    world.store().pool().execute(script).await.unwrap();

    let mut tx = world.store().begin(&grant).await.unwrap();
    let set_role = format!("SET LOCAL ROLE {role}");
    tx.execute(AssertSqlSafe(set_role.clone())).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);

    // The error still distinguishes a transaction that is over from one that is not.
    let mut tx = world.store().begin(&grant).await.unwrap();
    let end = AssertSqlSafe(format!("ROLLBACK; BEGIN; {set_role}"));
    tx.execute(sqlx::raw_sql(end)).await.unwrap();
    let error = tx.commit().await.unwrap_err();
    assert_kind!(error, Aborted);
}

/// Clients can read each name that SQL accepts.
/// Catches: a mark by SQL whose name no client can parse.
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
