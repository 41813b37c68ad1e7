//! The documented rights are enough for their purpose, and not wider than needed.

use std::{collections::BTreeSet, time::Duration};

use fenced_store::{FenceError, Forget, NotReady, Rights, admin::AdminError};
use sqlx::{AssertSqlSafe, Executor, PgPool};

use crate::{
    postgres::{
        roles::{Roles, chapter, documented, renamed},
        server::PostgresServer,
    },
    rule::{Harness, SqlHarness, assert_kind, balance, grant, high_water},
    servers::wrong_books_are_an_error,
};

fn code(error: &sqlx::Error) -> String {
    let error = error.as_database_error().unwrap();
    error.code().unwrap().into_owned()
}

#[tokio::test]
async fn the_documented_rights_are_enough_for_an_application() {
    let roles = Roles::as_documented().await;
    let store = roles.store_of("app").await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    store.claim(&old).await.unwrap();
    let mut tx = store.begin(&old).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&roles.world).await, 101);
    store.claim(&new).await.unwrap();
    let mark = store.high_water(new.resource()).await.unwrap().unwrap();
    assert_eq!(mark.token(), new.token());
    let error = store.begin(&old).await.unwrap_err();
    assert_kind!(error, Stale);
    store.migrate().await.unwrap();
    store.check(Rights::ClaimAndWrite).await.unwrap();
}

#[tokio::test]
async fn a_role_that_may_create_nothing_gets_an_error_about_a_wrong_schema() {
    let roles = Roles::as_documented().await;
    let store = roles.store_of("app").await;
    let as_owner = async |statement| roles.as_admin(statement).await;
    wrong_books_are_an_error::<PostgresServer>(&store, as_owner).await;
    roles.as_admin("DROP SCHEMA fenced CASCADE").await;
    let missing = store.check(Rights::Write).await.unwrap_err();
    assert_kind!(missing, NotMigrated);
    let refused = store.migrate().await.unwrap_err();
    assert_kind!(refused, Migration);
}

/// Each right that a fenced write needs is taken away. The error names it, and the right is given
/// back by the statement of the error.
#[tokio::test]
async fn the_error_names_the_missing_rights_of_a_role_and_how_to_give_them() {
    let roles = Roles::as_documented().await;
    let store = roles.store_of("app").await;
    let app = renamed("app", &roles.database);
    let to_write = [
        "USAGE ON SCHEMA fenced",
        "SELECT ON fenced._migrations",
        "EXECUTE ON ROUTINE fenced.begin_fenced",
        "EXECUTE ON ROUTINE fenced.begin_fenced_fast",
        "EXECUTE ON ROUTINE fenced.note_fence",
        "EXECUTE ON ROUTINE fenced.high_water",
        "EXECUTE ON ROUTINE fenced.settle",
        "USAGE ON DOMAIN fenced.autocommit",
        "USAGE ON DOMAIN fenced.statement_fence",
    ];
    let to_claim = [
        "EXECUTE ON ROUTINE fenced.claim",
        "EXECUTE ON ROUTINE fenced.open_transactions",
        "EXECUTE ON ROUTINE fenced.terminate_older",
        "EXECUTE ON ROUTINE fenced.resource_lock_key",
    ];
    for right in to_write.iter().chain(&to_claim) {
        let missing = async |rights| match store.check(rights).await {
            Ok(()) => None,
            Err(FenceError::NotReady(NotReady::RightMissing { grant, .. })) => Some(grant),
            Err(other) => panic!("{right}: {other:?}"),
        };
        let revoke = format!("REVOKE {right} FROM PUBLIC; REVOKE {right} FROM app");
        roles.as_admin(&revoke).await;
        let grant = format!("GRANT {right} TO {app}");
        assert_eq!(missing(Rights::ClaimAndWrite).await, Some(grant.clone()));
        let for_writers = to_write.contains(right).then(|| grant.clone());
        assert_eq!(missing(Rights::Write).await, for_writers);
        roles.as_admin(&grant).await;
        assert_eq!(missing(Rights::ClaimAndWrite).await, None);
    }
}

/// It cannot do this by the tables, by the functions of the rule, or by other functions in their
/// place.
#[tokio::test]
async fn an_application_cannot_touch_a_mark() {
    let roles = Roles::as_documented().await;
    let store = roles.store_of("app").await;
    store.claim(&grant("account:42", 33)).await.unwrap();
    for statement in [
        "SELECT * FROM fenced.high_water_mark",
        "SELECT * FROM fenced.lock_service",
        "UPDATE fenced.high_water_mark SET token = 1",
        "INSERT INTO fenced.high_water_mark VALUES ('account:43', 1, 'holder', 'redis')",
        "DELETE FROM fenced.high_water_mark",
        "TRUNCATE fenced.high_water_mark",
        "UPDATE fenced.lock_service SET name = 'mine'",
        "ALTER TABLE fenced.high_water_mark DISABLE TRIGGER ALL",
        "SELECT fenced.check_issuer('account:42', 'mine')",
        "SELECT fenced.raise_refusal('account:42', 1, 'holder', 'redis')",
        "SELECT fenced.seal_issuer('redis', 'mine', 'why')",
        "SELECT fenced.seal_mark('account:42', 'redis', 'mine', 1, 'why')",
        "SELECT fenced.reset_high_water('account:42', 33, 34, 'why')",
        "SELECT fenced.forget_marks('2 h')",
        "SELECT fenced.forget_leases('2 h')",
        "SELECT fenced.mark_floor()",
        "SELECT fenced.state_longest_hold('366 days')",
        "SELECT fenced.seal_floor('redis', 'redis', 999999999999999, 'why')",
        "SELECT fenced.reset_floor(33, 1, 'why')",
        "UPDATE fenced.forgotten SET marks = 999999999999999",
        "SELECT * FROM fenced.forgotten",
        "SELECT * FROM fenced.admin_log",
        "CREATE TABLE fenced.mine (id int)",
        "CREATE OR REPLACE FUNCTION fenced.resource_lock_key(resource text) RETURNS bigint
         LANGUAGE sql AS 'SELECT 7::bigint'",
        "SET ROLE fence_owner",
    ] {
        let sql = AssertSqlSafe(renamed(statement, &roles.database));
        let error = store.pool().execute(sql).await.unwrap_err();
        assert_eq!(code(&error), "42501", "{statement}: {error}");
    }
    assert_eq!(high_water(&roles.world, "account:42").await, Some(33));
}

/// The role writes, and a gateway claims.
/// Catches: a write that needs the right to claim.
#[tokio::test]
async fn a_role_may_be_let_write_and_not_claim() {
    let roles = Roles::as_documented().await;
    let [_, _, only_the_gateway_claims, _] = documented();
    roles
        .as_admin(
            "CREATE ROLE gateway LOGIN PASSWORD 'sesame'; GRANT USAGE ON SCHEMA fenced TO gateway",
        )
        .await;
    roles.as_admin(&only_the_gateway_claims).await;

    let (writer, gateway) = (roles.store_of("app").await, roles.store_of("gateway").await);
    let grant = grant("account:42", 33);
    let error = writer.claim(&grant).await.unwrap_err();
    assert_kind!(error, Db);
    gateway.claim(&grant).await.unwrap();
    let mut tx = writer.begin(&grant).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
}

/// The role has all other rights of an application.
/// Catches: a role that keeps idle marks of all resources from being forgotten.
#[tokio::test]
async fn only_a_role_with_the_right_to_it_states_the_longest_hold() {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    const YEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);
    let roles = Roles::as_documented().await;
    let (app, owner) = (
        roles.store_of("app").await,
        roles.store_of("fence_owner").await,
    );
    let hourly = Forget::older_than(HOUR);
    let missing = |refused| match refused {
        AdminError::Store(FenceError::NotReady(NotReady::RightMissing { what, grant, .. })) => {
            (what, grant)
        }
        other => panic!("{other:?}"),
    };
    let (what, _) = missing(app.forget_marks(&hourly).await.unwrap_err());
    assert_eq!(what, "call fenced.forget_marks");
    let (what, grant) = missing(app.state_longest_hold(YEAR).await.unwrap_err());
    assert_eq!(what, "call fenced.state_longest_hold");
    owner.forget_marks(&hourly).await.unwrap();

    roles.as_admin(&grant).await;
    app.state_longest_hold(YEAR).await.unwrap();
    let refused = owner.forget_marks(&hourly).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::NotForgettable { .. }),
        "{refused:?}"
    );
}

/// This is the setting of a database in which functions are not public.
/// Catches: a function whose right depends on a default of the database.
#[tokio::test]
async fn functions_need_not_be_public_by_default() {
    let world = PostgresServer::unmigrated().await;
    let pool = world.store().pool();
    pool.execute("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
        .await
        .unwrap();
    world.store().migrate().await.unwrap();
    let callable = callable_by("public", pool).await;
    assert_eq!(callable, listed());
}

/// Every function that an application may call is documented, and the other way round.
#[tokio::test]
async fn an_application_may_call_what_is_listed_and_nothing_else() {
    let roles = Roles::as_documented().await;
    let app = renamed("app", &roles.database);
    let callable = callable_by(&app, roles.world.store().pool()).await;
    assert_eq!(callable, listed());
}

async fn callable_by(role: &str, pool: &PgPool) -> BTreeSet<String> {
    let names = sqlx::query_scalar(
        "SELECT pronamespace::regnamespace || '.' || proname FROM pg_proc
         WHERE pronamespace IN ('fenced'::regnamespace, 'fenced_guards'::regnamespace)
           AND prorettype <> 'trigger'::regtype
           AND has_function_privilege($1, oid, 'EXECUTE')",
    );
    let names = names.bind(role).fetch_all(pool).await.unwrap();
    names.into_iter().collect()
}

fn listed() -> BTreeSet<String> {
    let chapter = chapter();
    let rows = chapter.lines().filter(|line| line.starts_with("| `fenced"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(str::to_owned).collect()
}
