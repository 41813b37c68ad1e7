//! The harness makes databases on a real Postgres.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{fs, os::unix::fs::MetadataExt};

use e2e::servers::postgres_database;
use sqlx::{Connection, PgConnection};

async fn backend(connection: &mut PgConnection) -> i32 {
    let pid = sqlx::query_scalar("SELECT pg_backend_pid()");
    pid.fetch_one(connection).await.unwrap()
}

#[tokio::test]
async fn databases_are_empty_and_separate() {
    let (one, two) = (postgres_database().await, postgres_database().await);
    assert_ne!(one.url(), two.url());
    let mut first = PgConnection::connect(one.url()).await.unwrap();
    let mut second = PgConnection::connect(two.url()).await.unwrap();
    for connection in [&mut first, &mut second] {
        let created = sqlx::query("CREATE TABLE accounts (id int)").execute(connection);
        created.await.unwrap();
    }
}

#[tokio::test]
async fn a_database_says_no_to_a_wrong_password() {
    let database = postgres_database().await;
    let (_, rest) = database.url().split_once('@').unwrap();
    let refused = PgConnection::connect(&format!("postgres://postgres:guess@{rest}")).await;
    let code = refused
        .unwrap_err()
        .as_database_error()
        .unwrap()
        .code()
        .unwrap()
        .into_owned();
    assert_eq!(code, "28P01");
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn postgres_does_not_run_as_root() {
    let database = postgres_database().await;
    let mut connection = PgConnection::connect(database.url()).await.unwrap();
    let process = format!("/proc/{}", backend(&mut connection).await);
    assert_ne!(fs::metadata(process).unwrap().uid(), 0);
}
