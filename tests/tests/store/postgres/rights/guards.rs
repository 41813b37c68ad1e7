//! Attacks on the triggers of protected tables.

use fenced_store::{FenceError, Protection};
use lock_core::ResourceName;
use sqlx::{AssertSqlSafe, Executor};

use super::refusal;
use crate::{
    postgres::{roles::Roles, server::PostgresServer},
    rule::{Harness, assert_kind, by_row, fresh, grant, is_unfenced},
};

/// The trigger of a table evaluates the id of a row. Here an application has made a table whose id
/// has a type with a cast of its own to text. The trigger of a protected table is on this table.
/// Catches: a function of a role without rights that runs with the rights of the role that
/// protects.
#[tokio::test]
async fn a_guard_calls_no_cast_of_an_application() {
    let roles = Roles::as_documented().await;
    roles.world.store().protect(&by_row()).await.unwrap();
    let app = roles.store_of("app").await;
    let grant = grant("account:42", 33);
    app.claim(&grant).await.unwrap();
    let guard: String = sqlx::query_scalar(
        "SELECT tgfoid::regproc::text FROM pg_trigger
         WHERE tgrelid = 'accounts'::regclass AND tgname = 'fenced_guard'",
    )
    .fetch_one(app.pool())
    .await
    .unwrap();
    let attack = format!(
        "CREATE TYPE pg_temp.evil AS (number integer);
         CREATE FUNCTION pg_temp.text_of(pg_temp.evil) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN
           RAISE 'sprung';
         END $$;
         CREATE CAST (pg_temp.evil AS text) WITH FUNCTION pg_temp.text_of(pg_temp.evil);
         CREATE TEMPORARY TABLE trap (id pg_temp.evil);
         CREATE TRIGGER trap AFTER INSERT ON trap FOR EACH ROW EXECUTE FUNCTION {guard}()"
    );
    let mut tx = app.begin(&grant).await.unwrap();
    tx.execute(sqlx::raw_sql(AssertSqlSafe(attack)))
        .await
        .unwrap();
    let error = tx
        .execute("INSERT INTO trap VALUES (ROW(1))")
        .await
        .unwrap_err();
    assert_eq!(refusal(&error).0, "FN011", "{error}");
}

/// A table that is one resource is written through another table, whose partition or child it is.
/// It became one before or after the call that protects it.
/// Catches: a trigger that fires only for the table that a statement names.
#[tokio::test]
async fn a_write_through_a_parent_is_refused() {
    let world: PostgresServer = fresh().await;
    let pool = world.store().pool();
    pool.execute(
        "CREATE TABLE parts (id int, region int) PARTITION BY RANGE (region);
         CREATE TABLE north PARTITION OF parts FOR VALUES FROM (0) TO (10);
         CREATE TABLE south (id int, region int);
         CREATE TABLE parent (id int, region int);
         CREATE TABLE child () INHERITS (parent);
         CREATE TABLE adopted (id int, region int);
         INSERT INTO north VALUES (1, 1);
         INSERT INTO south VALUES (2, 11);
         INSERT INTO child VALUES (3, 1);
         INSERT INTO adopted VALUES (4, 1)",
    )
    .await
    .unwrap();
    for table in ["north", "south", "child", "adopted"] {
        let whole = Protection::whole(table, ResourceName::new(table).unwrap());
        world.store().protect(&whole).await.unwrap();
    }
    pool.execute(
        "ALTER TABLE parts ATTACH PARTITION south FOR VALUES FROM (10) TO (20);
         ALTER TABLE adopted INHERIT parent",
    )
    .await
    .unwrap();
    for attack in [
        "UPDATE parts SET id = 7 WHERE region = 1",
        "UPDATE parts SET id = 7 WHERE region = 11",
        "INSERT INTO parts VALUES (8, 2)",
        "INSERT INTO parts VALUES (8, 12)",
        "DELETE FROM parts",
        "UPDATE parent SET region = 2 WHERE id = 3",
        "UPDATE parent SET region = 2 WHERE id = 4",
        "DELETE FROM parent",
        "TRUNCATE parts",
        "TRUNCATE parent",
    ] {
        let error: FenceError = pool.execute(attack).await.unwrap_err().into();
        assert!(is_unfenced(&error), "{attack}: {error:?}");
    }
}

/// For each setting the id of one row would have another text, and so another resource.
/// Catches: an id with two spellings, by one of which a holder writes to the row of another holder.
#[tokio::test]
async fn an_id_whose_text_depends_on_the_session_is_refused() {
    let world: PostgresServer = fresh().await;
    let pool = world.store().pool();
    let kinds = [
        "date",
        "timestamp",
        "timestamptz",
        "interval",
        "bytea",
        "float8",
        "money",
        "json",
        "mood",
        "day",
    ];
    pool.execute("CREATE TYPE mood AS ENUM ('a'); CREATE DOMAIN day AS date")
        .await
        .unwrap();
    for (number, kind) in kinds.iter().enumerate() {
        let table = format!("t{number}");
        let create = format!("CREATE TABLE {table} (id {kind})");
        pool.execute(AssertSqlSafe(create)).await.unwrap();
        let rows = Protection::rows(&table, "id", "row:").unwrap();
        let error = world.store().protect(&rows).await.unwrap_err();
        assert_kind!(error, CannotProtect, "{kind}");
        assert!(error.to_string().contains("an id is an integer"), "{error}");
    }
    pool.execute("CREATE DOMAIN number AS int; CREATE DOMAIN small AS number CHECK (VALUE < 100)")
        .await
        .unwrap();
    for kind in [
        "int2",
        "bigint",
        "numeric",
        "varchar(9)",
        "char(9)",
        "uuid",
        "small",
    ] {
        let create = format!("CREATE TABLE fit (id {kind})");
        pool.execute(AssertSqlSafe(create)).await.unwrap();
        let rows = Protection::rows("fit", "id", "row:").unwrap();
        world.store().protect(&rows).await.unwrap();
        pool.execute("DROP TABLE fit").await.unwrap();
    }
}

/// A writer needs no right on the schema of an id's type, with the guard or without it.
/// Catches: a guard that looks the type up by its name, with the rights of the writer.
#[tokio::test]
async fn a_writer_needs_no_right_on_the_schema_of_a_domain() {
    let roles = Roles::as_documented().await;
    roles
        .as_admin(
            "CREATE SCHEMA kinds; CREATE DOMAIN kinds.number AS bigint;
             CREATE TABLE numbered (id kinds.number, balance int);
             INSERT INTO numbered VALUES (42, 0);
             GRANT SELECT, INSERT, UPDATE, DELETE ON numbered TO app",
        )
        .await;
    let rows = Protection::rows("numbered", "id", "account:").unwrap();
    roles.world.store().protect(&rows).await.unwrap();
    let app = roles.store_of("app").await;
    let write = "UPDATE numbered SET balance = balance + 1 WHERE id = 42";
    let error: FenceError = app.pool().execute(write).await.unwrap_err().into();
    assert!(is_unfenced(&error), "{error:?}");
    let grant = grant("account:42", 33);
    app.claim(&grant).await.unwrap();
    let mut tx = app.begin(&grant).await.unwrap();
    tx.execute(write).await.unwrap();
    tx.execute("DELETE FROM numbered WHERE id = 42")
        .await
        .unwrap();
    tx.execute("INSERT INTO numbered SELECT 42, 0")
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

/// A role that may protect its own tables cannot get a function with our rights by choosing names.
/// It also cannot change tables that other roles have protected.
/// Catches: a text of the caller that becomes code of the owner.
#[tokio::test]
async fn names_stay_names_in_the_functions_of_triggers() {
    let roles = Roles::as_documented().await;
    roles
        .as_admin(
            "GRANT EXECUTE ON FUNCTION fenced.make_guard, fenced.drop_unused_guards TO app;
             ALTER TABLE accounts ADD \"\"\"; drop table accounts; --\" int",
        )
        .await;
    roles.world.store().protect(&by_row()).await.unwrap();
    let app = roles.store_of("app").await;
    for (attack, code) in [
        ("'x', $$'; DROP TABLE accounts; --$$", "22023"),
        ("'x', E'a\\nb'", "22023"),
        ("'x', repeat('a', 256)", "22023"),
        ("NULL, ''", "22023"),
        ("'x', NULL", "22023"),
    ] {
        let call = format!("SELECT fenced.make_guard('accounts', {attack})");
        let error = app.pool().execute(AssertSqlSafe(call)).await.unwrap_err();
        assert_eq!(refusal(&error).0, code, "{attack}: {error}");
    }
    // The column's name is quoted, and nothing of it is executed.
    let named = Protection::rows("accounts", "\"; drop table accounts; --", "it's:").unwrap();
    roles.world.store().protect(&named).await.unwrap();
    let write = "UPDATE accounts SET balance = 1 WHERE id = 42";
    app.pool().execute(write).await.unwrap_err();
    app.pool()
        .execute("SELECT fenced.drop_unused_guards()")
        .await
        .unwrap();
    let error: FenceError = app.pool().execute(write).await.unwrap_err().into();
    assert!(!error.is_retryable(), "{error:?}");
    roles.world.store().unprotect(&named).await.unwrap();
    app.pool().execute(write).await.unwrap();
}
