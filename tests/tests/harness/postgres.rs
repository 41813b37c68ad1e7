//! The harness makes databases on a real Postgres.

use std::{fs, os::unix::fs::MetadataExt};

use e2e::{
    servers::postgres_database,
    warden::{ServerKind, Warden},
};
use sqlx::{Connection, PgConnection};

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
async fn a_server_of_ours_refuses_a_wrong_password() {
    let server = Warden::start(ServerKind::Postgres).unwrap();
    let (_, rest) = server.running().url.split_once('@').unwrap();
    let refused = PgConnection::connect(&format!("postgres://postgres:guess@{rest}")).await;
    let error = refused.unwrap_err();
    let code = error.as_database_error().and_then(|error| error.code());
    assert_eq!(code.as_deref(), Some("28P01"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_of_ours_does_not_run_as_root() {
    let server = Warden::start(ServerKind::Postgres).unwrap();
    let process = format!("/proc/{}", server.running().pid);
    assert_ne!(fs::metadata(process).unwrap().uid(), 0);
}
