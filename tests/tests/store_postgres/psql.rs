//! The store rule from plain `psql`, and protected tables in a dump: clients that know nothing of
//! this crate.

use std::process::Stdio;

use e2e::{documented::example_for, servers::postgres_database};
use fenced_store::{FenceError, FencedStore, PgFencedStore, Protection};
use sqlx::Executor;
use tokio::{io::AsyncWriteExt, process::Command};

use crate::{
    rule::{Harness, balance, fenced_add, fresh, grant, high_water},
    server::PostgresServer,
};

/// What a client printed, and whether it was content.
async fn client(program: &str, arguments: &[&str], input: &str) -> (bool, String) {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}: run scripts/test"));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// Without the parameters that only sqlx knows.
fn for_libpq(url: &str) -> &str {
    url.split_once('?').map_or(url, |(url, _)| url)
}

async fn psql(url: &str, script: &str) -> (bool, String) {
    let settings = ["--set=ON_ERROR_STOP=1", "--set=VERBOSITY=verbose"];
    let arguments = [&["--no-psqlrc", for_libpq(url)], &settings[..]].concat();
    client("psql", &arguments, script).await
}

#[tokio::test]
async fn the_documented_example_runs_in_psql() {
    let world: PostgresServer = fresh().await;
    let (done, text) = psql(world.url(), &example_for("psql")).await;
    assert!(done, "{text}");
    assert_eq!(balance(&world).await, 90);
    assert_eq!(high_water(&world, "account:42").await, Some(34));
    // What it has claimed is claimed for a program, too.
    let error = world
        .store()
        .claim(&grant("account:42", 33))
        .await
        .unwrap_err();
    assert!(matches!(error, FenceError::Stale { .. }), "{error:?}");
}

#[tokio::test]
async fn psql_without_a_fence_is_refused() {
    let world: PostgresServer = fresh().await;
    let update = "UPDATE accounts SET balance = 0 WHERE id = 42";
    // The control.
    let (done, text) = psql(world.url(), "UPDATE accounts SET balance = 100").await;
    assert!(done, "{text}");
    let (done, text) = psql(world.url(), &example_for("psql")).await;
    assert!(done, "{text}");

    let stale = "SELECT fenced.enter('account:42', 33, 'somebody', 'redis');";
    let enter = "SELECT fenced.enter('account:42', 34, 'night-batch-7f3a', 'redis');";
    for (script, code) in [
        (update.to_owned(), "FN010"),
        (format!("BEGIN; {update}; COMMIT;"), "FN010"),
        (format!("BEGIN; {stale} {update}; COMMIT;"), "FN001"),
        // It has entered, and that transaction is over.
        (format!("BEGIN; {enter} COMMIT; {update};"), "FN010"),
        (format!("{enter} {update};"), "FN010"),
        (
            format!("BEGIN; {enter} INSERT INTO accounts VALUES (43, 0); COMMIT;"),
            "FN011",
        ),
        ("TRUNCATE accounts;".to_owned(), "FN010"),
    ] {
        let (done, text) = psql(world.url(), &script).await;
        assert!(
            !done && text.contains(&format!("ERROR:  {code}:")),
            "{script}: {text}"
        );
    }
    assert_eq!(balance(&world).await, 90);
}

/// A whole dump can be restored, and what it had protected is protected then.
#[tokio::test]
async fn a_restored_dump_is_protected() {
    let world: PostgresServer = fresh().await;
    let own = grant("account:42", 33);
    world.store().claim(&own).await.unwrap();
    let rows = Protection::rows("accounts", "id", "account:").unwrap();
    world.store().protect(&rows).await.unwrap();
    fenced_add(&world, &own).await.unwrap();

    let (done, dump) = client("pg_dump", &["--no-password", for_libpq(world.url())], "").await;
    assert!(done, "{dump}");
    let restored = postgres_database().await;
    let (done, text) = psql(restored.url(), &dump).await;
    assert!(done, "{text}");

    let pool = sqlx::PgPool::connect(restored.url()).await.unwrap();
    let update = "UPDATE accounts SET balance = balance + 1";
    let error = FenceError::from(pool.execute(update).await.unwrap_err());
    assert!(matches!(error, FenceError::Unfenced { .. }), "{error:?}");
    let store: PgFencedStore = FencedStore::new(pool);
    store.migrate().await.unwrap();
    let mut tx = store.begin(&own).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    assert_eq!(PostgresServer::balance(&mut tx).await, 102);
    tx.commit().await.unwrap();
    store.protect(&rows).await.unwrap();
    store.unprotect(&rows).await.unwrap();
    store.pool().execute(update).await.unwrap();
    store.pool().close().await;
}
