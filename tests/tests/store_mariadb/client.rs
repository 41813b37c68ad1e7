//! Protected tables and the plain `mariadb` client, which knows nothing of this crate.

use std::process::Stdio;

use e2e::documented::example_for;
use fenced_store::Protection;
use sqlx::{Executor, mysql::MySqlConnectOptions};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
    rule::{Harness, balance, fresh},
    server::MariaDbServer,
};

/// What the client printed, and whether it was content.
async fn mariadb(world: &MariaDbServer, script: &str) -> (bool, String) {
    let options: MySqlConnectOptions = world.url().parse().unwrap();
    let (_, rest) = world.url().split_once("://").unwrap();
    let (login, _) = rest.split_once('@').unwrap();
    let (user, password) = login.split_once(':').unwrap();
    let mut child = Command::new("mariadb")
        .args(["--no-defaults", "--skip-ssl", "--protocol=tcp"])
        .arg(format!("--host={}", options.get_host()))
        .arg(format!("--port={}", options.get_port()))
        .arg(format!("--user={user}"))
        .arg(options.get_database().unwrap())
        .env("MYSQL_PWD", password)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("mariadb: {error}: run scripts/test"));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(script.as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Accounts are protected, and the holder of the example has claimed its token.
async fn protected() -> MariaDbServer {
    let world: MariaDbServer = fresh().await;
    let rows = Protection::rows("accounts", "id", "account:").unwrap();
    world.store().protect(&rows).await.unwrap();
    world
        .store()
        .pool()
        .execute(
            "INSERT INTO fenced_mark (resource, token, holder, issuer)
             VALUES ('account:42', 34, 'night-batch-7f3a', 'redis')",
        )
        .await
        .unwrap();
    world
}

#[tokio::test]
async fn the_documented_example_runs_in_the_client() {
    let world = protected().await;
    let (done, text) = mariadb(&world, &example_for("mariadb")).await;
    assert!(done, "{text}");
    assert_eq!(balance(&world).await, 90);
}

#[tokio::test]
async fn the_client_without_a_fence_is_refused() {
    let world = protected().await;
    let update = "UPDATE accounts SET balance = 0 WHERE id = 42;";
    let example = example_for("mariadb");
    let stale = example.replace("token = 34", "token = 33");
    assert_ne!(stale, example);
    for (script, code) in [
        (update.to_owned(), "FN010"),
        (format!("START TRANSACTION; {update} COMMIT;"), "FN010"),
        (stale, "FN010"),
        (format!("{example} {update}"), "FN010"),
        (
            example.replace("SET balance = balance - 10", "SET id = 43"),
            "FN011",
        ),
    ] {
        let (done, text) = mariadb(&world, &script).await;
        assert!(
            !done && text.contains(&format!("({code})")),
            "{script}: {text}"
        );
    }
    assert_eq!(balance(&world).await, 90);
}
