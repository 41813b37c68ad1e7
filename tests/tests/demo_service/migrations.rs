//! The statements for the tables of a store are printed and applied by the database's own client.
//! Then the tables are the ones that the store makes itself.

use std::process::Command;

use e2e::{
    database_client::{mariadb, pg_dump, psql, sqlite3},
    servers::{MySqlServer, OnMariaDb, OnMySql, postgres_database},
    warden::workspace_binary,
};
use fenced_store::{Dialect, FencedStore, SqliteFencedStore};
use sqlx::{MySqlPool, PgPool, Row, SqlitePool, mysql::MySqlRow, sqlite::SqliteConnectOptions};

fn printed(dialect: &str) -> String {
    let mut command = Command::new(workspace_binary("palisade").unwrap());
    let output = command.args(["migrations", "print", "--dialect", dialect]);
    let output = output.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The words of a dump, without its layout, and without the key that is different in each dump.
fn words(schema: &str) -> Vec<&str> {
    schema
        .lines()
        .filter(|line| !line.starts_with('\\'))
        .flat_map(str::split_whitespace)
        .collect()
}

/// Checks that a migration changes nothing in the table of migrations, which `books` reads.
async fn assert_nothing_is_left_to_do<DB: Dialect, F: Future<Output = String>>(
    store: FencedStore<DB>,
    books: impl Fn() -> F,
) {
    let before = books().await;
    store.migrate().await.unwrap();
    assert_eq!(books().await, before);
    assert!(
        before.contains("marks") && before.contains("jobs"),
        "{before}"
    );
}

#[tokio::test]
async fn tables_made_by_psql_are_those_of_the_store() {
    let (by_hand, by_itself) = (postgres_database().await, postgres_database().await);
    let script = printed("postgres");
    let (done, text) = psql(by_hand.url(), &script).await;
    assert!(done, "{text}");
    let pool = PgPool::connect(by_itself.url()).await.unwrap();
    FencedStore::new(pool).migrate().await.unwrap();
    let schema = ["--schema-only"];
    let made = pg_dump(by_hand.url(), &schema).await;
    let expected = pg_dump(by_itself.url(), &schema).await;
    assert_eq!(words(&made), words(&expected));

    let pool = PgPool::connect(by_hand.url()).await.unwrap();
    assert_nothing_is_left_to_do(FencedStore::new(pool.clone()), async || {
        let books = "SELECT json_agg(m)::text FROM fenced._migrations m";
        sqlx::query_scalar(books).fetch_one(&pool).await.unwrap()
    })
    .await;
    // A second time it is an error that changes nothing.
    let (done, text) = psql(by_hand.url(), &script).await;
    assert!(!done && text.contains("already exists"), "{text}");
    assert_eq!(
        words(&pg_dump(by_hand.url(), &schema).await),
        words(&expected)
    );
}

#[tokio::test]
async fn tables_made_by_mariadb_are_those_of_the_store() {
    tables_made_by_hand_are_those_of_the_store::<OnMariaDb>().await;
}

#[tokio::test]
async fn tables_made_by_mysql_are_those_of_the_store() {
    tables_made_by_hand_are_those_of_the_store::<OnMySql>().await;
}

async fn tables_made_by_hand_are_those_of_the_store<S: MySqlServer>() {
    async fn schema(pool: &MySqlPool) -> String {
        let tables: Vec<String> = sqlx::query_scalar("SHOW TABLES")
            .fetch_all(pool)
            .await
            .unwrap();
        let mut schema = String::new();
        for table in tables {
            let show = sqlx::AssertSqlSafe(format!("SHOW CREATE TABLE `{table}`"));
            let shown: MySqlRow = sqlx::query(show).fetch_one(pool).await.unwrap();
            schema += &shown.get::<String, _>(1);
        }
        // MySQL notes the character set of the session before texts, although they are ASCII.
        schema.replace("_utf8mb3'", "_utf8mb4'")
    }
    let (by_hand, by_itself) = (S::database().await, S::database().await);
    let script = printed("mysql");
    let (done, text) = mariadb(by_hand.url(), &script).await;
    assert!(done, "{text}");
    let expected = MySqlPool::connect(by_itself.url()).await.unwrap();
    FencedStore::new(expected.clone()).migrate().await.unwrap();
    let pool = MySqlPool::connect(by_hand.url()).await.unwrap();
    let made = schema(&pool).await;
    assert_eq!(made, schema(&expected).await);

    assert_nothing_is_left_to_do(FencedStore::new(pool.clone()), async || {
        let books = "SELECT CAST(GROUP_CONCAT(CONCAT_WS(' ', version, description, installed_on,
                     success, HEX(checksum), execution_time) ORDER BY version) AS CHAR)
                     FROM _fenced_migrations";
        sqlx::query_scalar(books).fetch_one(&pool).await.unwrap()
    })
    .await;
    let (done, text) = mariadb(by_hand.url(), &script).await;
    assert!(!done && text.contains("Duplicate entry"), "{text}");
    assert_eq!(schema(&pool).await, made);
}

#[tokio::test]
async fn tables_made_by_sqlite3_are_those_of_the_store() {
    async fn open(file: &std::path::Path) -> SqlitePool {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true);
        let options = SqliteFencedStore::recommended(options);
        SqlitePool::connect_with(options).await.unwrap()
    }
    async fn schema(pool: &SqlitePool) -> String {
        let schema = "SELECT group_concat(sql, '; ') FROM sqlite_schema ORDER BY name";
        sqlx::query_scalar(schema).fetch_one(pool).await.unwrap()
    }
    let directory = tempfile::tempdir().unwrap();
    let by_hand = directory.path().join("by_hand.db");
    let script = printed("sqlite");
    let (done, text) = sqlite3(&by_hand, &script).await;
    assert!(done, "{text}");
    let expected = open(&directory.path().join("by_itself.db")).await;
    FencedStore::new(expected.clone()).migrate().await.unwrap();
    let pool = open(&by_hand).await;
    let made = schema(&pool).await;
    assert_eq!(words(&made), words(&schema(&expected).await));

    assert_nothing_is_left_to_do(FencedStore::new(pool.clone()), async || {
        let books = "SELECT group_concat(printf('%s %s %s %s %s %s', version, description,
                     installed_on, success, hex(checksum), execution_time))
                     FROM _fenced_migrations";
        sqlx::query_scalar(books).fetch_one(&pool).await.unwrap()
    })
    .await;
    let (done, text) = sqlite3(&by_hand, &script).await;
    assert!(!done && text.contains("already exists"), "{text}");
    assert_eq!(schema(&pool).await, made);
}
