//! Attacks by a role that had made our schemas before us, or that may create objects there.

use fenced_store::{FenceError, FencedStore, NotReady, Rights};
use sqlx::Executor;

use crate::{
    postgres::{roles::Roles, server::PostgresServer},
    rule::{Harness, SqlHarness},
};

fn reason(error: FenceError) -> String {
    match error {
        FenceError::NotReady(NotReady::SchemaNotOurs { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// A view is in the place of our table, and calls any function that its owner likes.
/// Catches: code that runs with the rights of the superuser who migrates.
#[tokio::test]
async fn a_schema_that_another_role_has_made_before_is_refused() {
    let world = PostgresServer::unmigrated().await;
    let role = format!("squatter_{:016x}", rand::random::<u64>());
    let script = format!(
        "CREATE ROLE {role}; SET ROLE {role};
         RESET ROLE;
         CREATE SCHEMA fenced AUTHORIZATION {role};
         CREATE TABLE public.sprung (by text);
         GRANT INSERT ON public.sprung TO {role};
         SET ROLE {role};
         CREATE FUNCTION fenced.trap() RETURNS bigint VOLATILE LANGUAGE sql
           AS $$ INSERT INTO public.sprung VALUES (current_user); SELECT 1::bigint $$;
         CREATE VIEW fenced._migrations AS
           SELECT fenced.trap() AS version, 'fenced'::text AS description, true AS success,
                  ''::bytea AS checksum;
         RESET ROLE"
    );
    let admin = world.store().pool();
    let mut connection = admin.acquire().await.unwrap();
    connection
        .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(script)))
        .await
        .unwrap();
    let refused = reason(world.store().migrate().await.unwrap_err());
    assert!(refused.contains(&role), "{refused}");
    let refused = reason(world.store().check(Rights::Write).await.unwrap_err());
    assert!(refused.contains(&role), "{refused}");
    let script = FencedStore::<sqlx::Postgres>::migration_script();
    let error = connection
        .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(script)))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("migrate as that role"),
        "{error}"
    );
    connection.execute("ROLLBACK").await.unwrap();
    let sprung: i64 = sqlx::query_scalar("SELECT count(*) FROM public.sprung")
        .fetch_one(admin)
        .await
        .unwrap();
    assert_eq!(sprung, 0);
    // The control: the trap works.
    admin
        .execute("SELECT version FROM fenced._migrations")
        .await
        .unwrap();
    let drop = format!("DROP SCHEMA fenced CASCADE; DROP OWNED BY {role}; DROP ROLE {role}");
    admin
        .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(drop)))
        .await
        .unwrap();
    world.store().migrate().await.unwrap();
}

/// Catches: a function of another role that is called in the place of ours.
#[tokio::test]
async fn a_schema_in_which_another_role_may_create_is_refused() {
    let world = PostgresServer::unmigrated().await;
    let admin = world.store().pool();
    for schema in ["fenced", "fenced_guards"] {
        let open = format!("CREATE SCHEMA {schema}; GRANT CREATE ON SCHEMA {schema} TO PUBLIC");
        admin
            .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(open)))
            .await
            .unwrap();
        let reason = reason(world.store().migrate().await.unwrap_err());
        let (_, advice) = reason.split_once(": ").unwrap();
        assert!(advice.starts_with("REVOKE CREATE ON SCHEMA"), "{reason}");
        let advice = sqlx::AssertSqlSafe(advice.to_owned());
        admin.execute(sqlx::raw_sql(advice)).await.unwrap();
    }
    world.store().migrate().await.unwrap();
}

/// Catches: a table of another role, whose triggers run with the rights of its writers.
#[tokio::test]
async fn objects_that_another_role_has_made_before_are_refused() {
    let world = PostgresServer::unmigrated().await;
    let admin = world.store().pool();
    let role = format!("planter_{:016x}", rand::random::<u64>());
    let plant = format!(
        "CREATE ROLE {role}; CREATE SCHEMA fenced; GRANT ALL ON SCHEMA fenced TO {role};
         SET ROLE {role}; CREATE TABLE fenced.high_water_mark (resource text); RESET ROLE;
         REVOKE ALL ON SCHEMA fenced FROM {role}"
    );
    let mut connection = admin.acquire().await.unwrap();
    connection
        .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(plant)))
        .await
        .unwrap();
    let refused = reason(world.store().migrate().await.unwrap_err());
    let expected = format!("high_water_mark in it belongs to {role}: drop what is not ours");
    assert!(refused.starts_with(&expected), "{refused}");
    let drop = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    connection
        .execute(sqlx::raw_sql(sqlx::AssertSqlSafe(drop)))
        .await
        .unwrap();
    world.store().migrate().await.unwrap();
}

/// Catches: a check whether all is migrated that runs an object in the place of the table.
#[tokio::test]
async fn a_table_of_migrations_that_is_none_is_not_read() {
    let roles = Roles::as_documented().await;
    let app = roles.store_of("app").await;
    app.check(Rights::Write).await.unwrap();
    for planted in [
        "ALTER TABLE fenced._migrations RENAME TO old_migrations;
         CREATE VIEW fenced._migrations AS SELECT * FROM fenced.old_migrations;
         GRANT SELECT ON fenced._migrations TO PUBLIC",
        "DROP VIEW fenced._migrations;
         ALTER TABLE fenced.old_migrations RENAME TO _migrations;
         ALTER TABLE fenced._migrations ENABLE ROW LEVEL SECURITY;
         CREATE POLICY p ON fenced._migrations USING (1 / 0 = 1)",
    ] {
        roles.as_admin(planted).await;
        for refused in [app.check(Rights::Write).await, app.migrate().await] {
            let reason = reason(refused.unwrap_err());
            assert!(reason.starts_with("_migrations "), "{reason}");
        }
    }
}

/// The owner of a table protects it, but cannot create objects of its own in the schema of our
/// functions.
/// Catches: a right that is wider than its purpose.
#[tokio::test]
async fn no_documented_right_lets_a_role_create_in_our_schemas() {
    let roles = Roles::as_documented().await;
    let docs = e2e::project::tracked_files(Some("md"));
    assert!(docs.len() > 10);
    for file in docs {
        let grants = file.text.lines().filter(|line| line.starts_with("GRANT "));
        for grant in grants {
            let opens = grant.contains("CREATE") && grant.contains("SCHEMA fenced");
            assert!(!opens, "{}: {grant}", file.path.display());
        }
    }
    let app = roles.store_of("app").await;
    for attack in [
        "CREATE FUNCTION fenced.check_issuer(text, text, int) RETURNS void LANGUAGE sql AS ''",
        "CREATE FUNCTION fenced_guards.check_row_write(text, oid) RETURNS void LANGUAGE sql AS ''",
        "CREATE TABLE fenced_guards.mine (id int)",
    ] {
        let error = app.pool().execute(attack).await.unwrap_err();
        assert_eq!(super::refusal(&error).0, "42501", "{attack}: {error}");
    }
}
