//! Ids of rows, and the one resource that each row has.

use e2e::{database_client::mariadb, servers::MySqlServer};
use fenced_store::{FenceError, Protection};
use sqlx::{AssertSqlSafe, Executor, MySqlConnection, Row};

use crate::{
    mysql::server::{MySqlStore, on},
    rule::{Harness, SqlHarness, assert_kind, fresh, grant},
};

/// Settings of a session on which the texts of ids may depend.
const SETTINGS: [&str; 5] = [
    "SET time_zone = '+05:00'",
    "SET lc_time_names = 'de_DE'",
    "SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'",
    "SET NAMES latin1",
    "SET div_precision_increment = 9",
];

async fn run(connection: &mut MySqlConnection, statement: &str) -> Result<(), FenceError> {
    let statement = AssertSqlSafe(statement.to_owned());
    Ok(connection.execute(statement).await.map(drop)?)
}

/// A table with one row, whose id has this type and this value.
async fn table_of<S: MySqlServer>(world: &MySqlStore<S>, id: &str, value: &str) -> Protection {
    let mut connection = world.store().pool().acquire().await.unwrap();
    for statement in [
        "DROP TABLE IF EXISTS facts".to_owned(),
        format!("CREATE TABLE facts (day DATETIME, number INT DEFAULT 0, id {id})"),
        match value {
            "" => "INSERT INTO facts (day) VALUES ('2026-11-27 12:00:00')".to_owned(),
            value => format!("INSERT INTO facts (id) VALUES ({value})"),
        },
    ] {
        run(&mut connection, &statement).await.unwrap();
    }
    Protection::rows("facts", "id", "fact:").unwrap()
}

/// The text of the id in a session with this setting. The session opens the table anew, because on
/// a busy server MySQL has once shown a day in the language of another session.
async fn text<S: MySqlServer>(world: &MySqlStore<S>, setting: &'static str) -> Vec<u8> {
    let flush = "FLUSH TABLES facts";
    world.store().pool().execute(flush).await.unwrap();
    let store = world.store_after(setting).await;
    let text = sqlx::raw_sql("SELECT CONCAT('fact:', id) FROM facts");
    let row = store.pool().fetch_one(text).await.unwrap();
    row.try_get_unchecked(0).unwrap()
}

/// Two holders, each with the fence of one of the texts, would write one row.
async fn a_row_whose_id_each_session_writes_differently_is_not_protected<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    for (id, value, setting) in [
        ("TIMESTAMP", "'2026-11-27 12:00:00'", SETTINGS[0]),
        (
            "VARCHAR(20) AS (CAST(DAYNAME(day) AS CHAR)) VIRTUAL",
            "",
            SETTINGS[1],
        ),
    ] {
        let facts = table_of(&world, id, value).await;
        // The control.
        assert_ne!(text(&world, "DO 0").await, text(&world, setting).await);
        let error = world.store().protect(&facts).await.unwrap_err();
        assert_kind!(error, CannotProtect);
    }
    assert_eq!(world.triggers().await, Vec::<String>::new());
}

async fn types_whose_text_is_not_the_id_are_not_protected<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    for (id, value) in [
        ("FLOAT", "16777217"),
        ("DOUBLE", "0.1"),
        ("DATE", "'2026-11-27'"),
        ("DATETIME(3)", "'2026-11-27'"),
        ("TIME", "'12:00:00'"),
        ("YEAR", "2026"),
        ("BIT(8)", "65"),
        ("BINARY(4)", "'a'"),
        ("VARBINARY(4)", "'a'"),
        ("BLOB", "'a'"),
        ("ENUM('a', 'b')", "'a'"),
        ("SET('a', 'b')", "'a'"),
        on::<S, _>(("INET6", "'::1'"), ("JSON", "'1'")),
        ("POINT", "POINT(1, 2)"),
    ] {
        let facts = table_of(&world, id, value).await;
        match world.store().protect(&facts).await.unwrap_err() {
            FenceError::CannotProtect { reason } => assert!(
                reason.contains("facts.id") && reason.contains("STORED"),
                "{reason}"
            ),
            other => panic!("{id}: {other:?}"),
        }
    }
}

async fn other_types_have_one_text_and_are_protected<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    let uuid = "'0189c2e1-0000-7000-8000-00000000000a'";
    for (token, (id, value)) in (1..).zip([
        ("TINYINT", "1"),
        ("INT(8) ZEROFILL", "1"),
        ("BIGINT UNSIGNED", "18446744073709551615"),
        ("DECIMAL(20, 2)", "1.5"),
        ("CHAR(5)", "'a'"),
        ("VARCHAR(5) CHARACTER SET utf16", "'a'"),
        ("TEXT CHARACTER SET latin1", "'a'"),
        (on::<S, _>("UUID", "VARCHAR(36)"), uuid),
        ("VARCHAR(20) AS (TO_DAYS(day)) STORED", ""),
    ]) {
        let facts = table_of(&world, id, value).await;
        let expected = text(&world, "DO 0").await;
        for setting in SETTINGS {
            if !(id == "CHAR(5)" && setting.contains("PAD")) {
                assert_eq!(text(&world, setting).await, expected, "{id}: {setting}");
            }
        }
        world.store().protect(&facts).await.unwrap();
        let resource = String::from_utf8(expected).unwrap();
        let own = grant(&resource, token);
        world.store().claim(&own).await.unwrap();
        for setting in SETTINGS {
            let store = world.store_after(setting).await;
            let mut tx = store.begin(&own).await.unwrap();
            let write = "UPDATE facts SET number = number + 1";
            run(&mut tx, write)
                .await
                .unwrap_or_else(|error| panic!("{id}: {setting}: {error}"));
            tx.commit().await.unwrap();
        }
    }
}

/// Comparisons of texts ignore spaces at the end.
async fn an_id_with_a_space_is_not_the_resource_without_it<S: MySqlServer>() {
    let world: MySqlStore<S> = fresh().await;
    let pool = world.store().pool();
    pool.execute("CREATE TABLE texts (id VARCHAR(20))")
        .await
        .unwrap();
    let texts = Protection::rows("texts", "id", "text:").unwrap();
    world.store().protect(&texts).await.unwrap();
    world.store().claim(&grant("text:x", 1)).await.unwrap();
    // A client that calls the functions by hand need not say which resources it has.
    let insert = |id: &str| {
        format!(
            "START TRANSACTION;
             SET @fenced_tx_name = 'by-hand';
             REPLACE INTO fenced_open_transaction (connection_id, resource, token, tx_name)
               VALUES (CONNECTION_ID(), 'text:x', 1, 'by-hand');
             INSERT INTO texts VALUES ('{id}');"
        )
    };
    let (done, said) = mariadb(world.url(), &insert("x")).await;
    assert!(done, "{said}");
    let (done, said) = mariadb(world.url(), &insert("x ")).await;
    assert!(!done && said.contains("(FN011)"), "{said}");
}

on_both!(
    a_row_whose_id_each_session_writes_differently_is_not_protected,
    types_whose_text_is_not_the_id_are_not_protected,
    other_types_have_one_text_and_are_protected,
    an_id_with_a_space_is_not_the_resource_without_it,
);
