//! Names of marks and leases are ASCII, also where a column of ASCII keeps other bytes.

use e2e::servers::{MySqlServer, OnMariaDb};
use fenced_store::{FenceError, NotReady};
use sqlx::{AssertSqlSafe, Executor};

use crate::{
    mysql::server::{MySqlStore, on},
    rule::{Harness, fresh},
};

const WITH_ANOTHER_BYTE: &str =
    "INSERT INTO fenced_high_water_mark (resource, token, holder, issuer)
    VALUES (x'72E9', 1, '', 'redis')";

/// In a session that keeps texts as they come. MySQL cuts the name at such a byte.
/// Catches: a row whose name no client can write, so that the row stays for ever.
async fn no_table_keeps_a_name_with_a_byte_above_127<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    let mut owner = world.store().pool().acquire().await.unwrap();
    owner.execute("SET sql_mode = ''").await.unwrap();
    for (table, columns, values) in [
        (
            "fenced_high_water_mark",
            "token, holder, issuer",
            "1, '', 'redis'",
        ),
        ("fenced_lease", "token, attempts, is_quiet", "1, '', 0"),
    ] {
        for name in ["x'72E9'", "_ascii x'C3A9'", "CONCAT('a', x'80', 'b')"] {
            let insert =
                format!("INSERT INTO {table} (resource, {columns}) VALUES ({name}, {values})");
            let kept = owner.execute(AssertSqlSafe(insert)).await.is_ok();
            assert!(!kept || on::<S, _>(false, true), "{table}: {name}");
        }
        let odd =
            format!("SELECT COUNT(*) FROM {table} WHERE HEX(resource) REGEXP '^(..)*[89A-F]'");
        let odd: i64 = sqlx::query_scalar(AssertSqlSafe(odd))
            .fetch_one(&mut *owner)
            .await
            .unwrap();
        assert_eq!(odd, 0, "{table}");
    }
}

/// Catches: a migration that is half applied, and cannot be continued.
#[tokio::test]
async fn the_migration_that_refuses_such_a_name_goes_on_when_the_row_is_gone() {
    let world: MySqlStore<OnMariaDb> = fresh().await;
    let (store, pool) = (world.store(), world.store().pool());
    let forget = "DELETE FROM _fenced_migrations WHERE version = 11";
    for before in [
        "ALTER TABLE fenced_high_water_mark DROP CONSTRAINT mark_is_ascii",
        forget,
        WITH_ANOTHER_BYTE,
    ] {
        pool.execute(before).await.unwrap();
    }
    let refused = format!("{:?}", store.migrate().await.unwrap_err());
    assert!(refused.contains("mark_is_ascii"), "{refused}");
    let half = store.migrate().await.unwrap_err();
    assert!(
        matches!(half, FenceError::NotReady(NotReady::HalfApplied { .. })),
        "{half:?}"
    );
    pool.execute("DELETE FROM fenced_high_water_mark")
        .await
        .unwrap();
    pool.execute(forget).await.unwrap();
    store.migrate().await.unwrap();
    assert!(pool.execute(WITH_ANOTHER_BYTE).await.is_err());
}

on_both!(no_table_keeps_a_name_with_a_byte_above_127);
