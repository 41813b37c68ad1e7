//! The harness makes databases on a real MariaDB.

use std::{fs, os::unix::fs::MetadataExt};

use e2e::{
    servers::mariadb_database,
    warden::{ServerKind, Warden},
};
use sqlx::{Connection, MySqlConnection};

#[tokio::test]
async fn databases_are_empty_and_separate() {
    let (one, two) = (mariadb_database().await, mariadb_database().await);
    assert_ne!(one.url(), two.url());
    let mut first = MySqlConnection::connect(one.url()).await.unwrap();
    let mut second = MySqlConnection::connect(two.url()).await.unwrap();
    for connection in [&mut first, &mut second] {
        let created = sqlx::query("CREATE TABLE accounts (id int)").execute(connection);
        created.await.unwrap();
    }
}

/// What the guarantees name as tested.
#[tokio::test]
async fn it_is_mariadb() {
    let database = mariadb_database().await;
    let mut connection = MySqlConnection::connect(database.url()).await.unwrap();
    let version: String = sqlx::query_scalar("SELECT VERSION()")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(version.contains("MariaDB"), "{version}");
}

#[tokio::test]
async fn a_server_of_ours_refuses_a_wrong_password() {
    let server = Warden::start(ServerKind::MariaDb).unwrap();
    let (_, rest) = server.running().url.split_once('@').unwrap();
    let refused = MySqlConnection::connect(&format!("mysql://e2e:guess@{rest}")).await;
    let error = refused.unwrap_err();
    let code = error.as_database_error().and_then(|error| error.code());
    assert_eq!(code.as_deref(), Some("28000"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_of_ours_does_not_run_as_root() {
    let server = Warden::start(ServerKind::MariaDb).unwrap();
    let process = format!("/proc/{}", server.running().pid);
    assert_ne!(fs::metadata(process).unwrap().uid(), 0);
}
