//! Operators set a mark by hand, and hand a store over, from the command line.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

use e2e::{
    observer::until,
    servers::{MySqlDatabase, mariadb_database, mysql_database, redis},
    warden::workspace_binary,
};
use fenced_store::{Dialect, FencedStore, SqliteFencedStore};
use lock_core::{FencingToken, Holder, Issuer, Plausibility, ResourceName, Sequencer};
use sqlx::{MySqlPool, Sqlite, SqlitePool, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use crate::gateway::Gateway;

/// Runs the program as a script does: without a terminal.
fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(workspace_binary("palisade").unwrap());
    command.env_remove("PALISADE_STORE").env_remove("RUST_LOG");
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

/// Runs the program at a terminal, and types this. Returns its output as one text.
fn run_at_a_terminal(arguments: &[&str], typed: &str) -> (Option<i32>, String) {
    let binary = workspace_binary("palisade").unwrap();
    let line = format!("{} '{}'", binary.display(), arguments.join("' '"));
    let mut child = Command::new("script")
        .args([
            "--quiet",
            "--flush",
            "--return",
            "--command",
            &line,
            "/dev/null",
        ])
        .env_remove("PALISADE_STORE")
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("script: {error}: run scripts/test"));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("{typed}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), said)
}

/// A store with tables, and the URL of its file.
async fn file() -> (TempDir, String, SqliteFencedStore) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("accounts.db");
    let url = format!("sqlite:{}", file.display());
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(SqliteFencedStore::recommended(options));
    let store = FencedStore::new(pool.await.unwrap()).plausibility(Plausibility::unchecked());
    store.migrate().await.unwrap();
    (directory, url, store)
}

fn name(resource: &str) -> ResourceName {
    ResourceName::new(resource).unwrap()
}

async fn claim<DB: Dialect>(store: &FencedStore<DB>, resource: &str, token: u64) {
    claim_by("redis", store, resource, token).await;
}

async fn claim_by<DB: Dialect>(issuer: &str, store: &FencedStore<DB>, resource: &str, token: u64) {
    let grant = Sequencer::new(
        Issuer::new(issuer).unwrap(),
        name(resource),
        FencingToken::new(token).unwrap(),
        Holder::random(),
    );
    store.claim(&grant).await.unwrap();
}

async fn mark<DB: Dialect>(store: &FencedStore<DB>, resource: &str) -> u64 {
    let mark = store.high_water(&name(resource)).await.unwrap();
    mark.unwrap().token().get()
}

const MAX: &str = "999999999999999";

fn reset<'a>(url: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    let command = [
        "reset-high-water",
        "--store",
        url,
        "account:42",
        "--reason",
        "poisoned",
    ];
    [&command[..], arguments].concat()
}

/// A store whose account has a mark with a faulty token.
async fn poisoned() -> (TempDir, String, SqliteFencedStore) {
    let (directory, url, store) = file().await;
    claim::<Sqlite>(&store, "account:42", MAX.parse().unwrap()).await;
    (directory, url, store)
}

#[tokio::test]
async fn a_mark_is_lowered_and_a_store_handed_over_from_the_command_line() {
    let (_directory, url, store) = poisoned().await;
    let lower = ["--lower-to", "33", "--json"];
    for (mistake, code) in [
        (&["--expected", MAX][..], 2),
        (&["--expected", "34", "--yes"], 1),
    ] {
        let output = run(&reset(&url, &[mistake, &lower].concat()));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("nothing was changed"), "{said}");
        assert_eq!(mark(&store, "account:42").await.to_string(), MAX);
    }
    let up = ["--expected", MAX, "--raise-to", "33", "--yes"];
    assert_eq!(run(&reset(&url, &up)).status.code(), Some(2));
    let meant = [&["--expected", MAX, "--yes"][..], &lower].concat();
    let output = run(&reset(&url, &meant));
    assert!(output.status.success(), "{output:?}");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let now = mark(&store, "account:42").await;
    assert_eq!((said["to"].as_u64(), now), (Some(33), 33));
    hand_over(&url).await;
    assert!(mark(&store, "account:42").await > 33);
}

fn migrate<'a>(url: &'a str, new: &'a str, name: &'a str) -> Vec<&'a str> {
    let order = ["migrate", "--store", url, "--from-issuer", "redis"];
    [
        &order[..],
        &["--to", new, "--to-issuer", name, "--reason", "moved"],
    ]
    .concat()
}

/// Hands over to `new`, with one mistake before the handover and another one after it.
async fn hand_over(url: &str) {
    let redis = redis().await;
    let unsure = run(&migrate(url, redis.url(), "new"));
    assert_eq!(unsure.status.code(), Some(2));
    let sure = |name| run(&[&migrate(url, redis.url(), name)[..], &["--yes"]].concat());
    let output = sure("new");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("marks sealed: 1, the last one is account:42"),
        "{said}"
    );
    let third = sure("third");
    assert_eq!(third.status.code(), Some(1), "it is new's now");
}

#[tokio::test]
async fn at_a_terminal_the_name_has_to_be_typed() {
    let (_directory, url, store) = poisoned().await;
    let order = reset(&url, &["--expected", MAX, "--lower-to", "33"]);
    for mistake in ["account:43", "y", "yes", ""] {
        let (code, said) = run_at_a_terminal(&order, mistake);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("nothing was changed"), "{said}");
        assert!(said.contains("Type account:42 to go on"), "{said}");
        assert!(said.contains("EVERY HOLDER OF A GREATER TOKEN"), "{said}");
        assert_eq!(mark(&store, "account:42").await.to_string(), MAX);
    }
    let (code, said) = run_at_a_terminal(&order, "account:42");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(mark(&store, "account:42").await, 33);

    let redis = redis().await;
    let order = migrate(&url, redis.url(), "new");
    let (code, said) = run_at_a_terminal(&order, "redis");
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(mark(&store, "account:42").await, 33);
    let (code, said) = run_at_a_terminal(&order, "new");
    assert_eq!(code, Some(0), "{said}");
    assert!(mark(&store, "account:42").await > 33);
}

#[tokio::test]
async fn operators_work_on_mariadb_and_create_nothing() {
    let database = mariadb_database().await;
    let url = database.url().replacen("mysql://", "mariadb://", 1);
    operators_work_and_create_nothing(&database, &url).await;
}

#[tokio::test]
async fn operators_work_on_mysql_and_create_nothing() {
    let database = mysql_database().await;
    operators_work_and_create_nothing(&database, database.url()).await;
}

/// The database has the tables, and the user could not make any.
async fn operators_work_and_create_nothing(database: &MySqlDatabase, url: &str) {
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    let store = FencedStore::new(pool.clone());
    let redis = redis().await;
    let order = [&migrate(url, redis.url(), "new")[..], &["--yes"]].concat();
    let without = run(&order);
    let said = String::from_utf8(without.stderr).unwrap();
    assert_eq!(without.status.code(), Some(3), "{said}");
    // The server is there, so the message does not ask whether it is down.
    assert!(
        said.contains("migrations print") && !said.contains("down?"),
        "{said}"
    );
    let tables: Vec<String> = sqlx::query_scalar("SHOW TABLES")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert!(tables.is_empty(), "{tables:?}");

    store.migrate().await.unwrap();
    claim(&store, "account:42", 33).await;
    let wrong = run(&reset(
        url,
        &["--expected", "33", "--raise-to", "33", "--yes"],
    ));
    let said = String::from_utf8(wrong.stderr).unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{said}");
    assert!(said.contains("--lower-to"), "{said}");
    let raise = reset(url, &["--expected", "33", "--raise-to", "40", "--yes"]);
    let output = run(&raise);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(mark(&store, "account:42").await, 40);
    let output = run(&order);
    assert!(output.status.success(), "{output:?}");
    assert!(mark(&store, "account:42").await > 40);
}

/// Catches: an operator's command that opens a file as the store recommends: its journal mode is
/// kept in the file.
#[tokio::test]
async fn a_file_keeps_its_journal_mode() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("accounts.db");
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    SqliteFencedStore::new(pool.clone())
        .migrate()
        .await
        .unwrap();
    pool.close().await;
    // The place in the file that says its journal: 1 is a journal that is rolled back, 2 a
    // write-ahead log.
    let mode = || std::fs::read(&file).unwrap()[18];
    assert_eq!(mode(), 1);
    let url = format!("sqlite:{}", file.display());
    let redis = redis().await;
    let sealed = run(&[&migrate(&url, redis.url(), "new")[..], &["--yes"]].concat());
    assert!(sealed.status.success(), "{sealed:?}");
    assert_eq!(mode(), 1);
}

/// The first second of 2026, as a token.
const IDLE: u64 = 176_722_560_000_000;

/// A store with an old mark.
async fn idle(issuer: &str) -> (TempDir, String, SqliteFencedStore) {
    let (directory, url, store) = file().await;
    claim_by(issuer, &store, "order:1", IDLE).await;
    sqlx::query("UPDATE fenced_high_water_mark SET claimed_at = '2026-01-01T00:00:00.000Z'")
        .execute(store.pool())
        .await
        .unwrap();
    (directory, url, store)
}

/// Catches: a command that forgets the marks of another lock service, or hides the floor.
#[tokio::test]
async fn idle_marks_are_forgotten_from_the_command_line() {
    let (_directory, url, store) = idle("mine").await;
    let forget = |more: &[&'static str]| {
        let command = ["forget-marks", "--lock", &url, "--store", &url, "--json"];
        run(&[&command[..], more].concat())
    };
    assert_eq!(forget(&["--older-than", "30m"]).status.code(), Some(2));
    let other = forget(&[]);
    assert_eq!(other.status.code(), Some(1), "{other:?}");
    assert!(store.high_water(&name("order:1")).await.unwrap().is_some());

    let done = forget(&["--issuer", "mine"]);
    assert!(done.status.success(), "{done:?}");
    let told: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let expected = serde_json::json!({ "marks": 1, "leases": 0, "floor": IDLE });
    assert_eq!(told, expected);
    assert!(store.high_water(&name("order:1")).await.unwrap().is_none());

    let floor = IDLE.to_string();
    let lower = |expected: &str| {
        run(&[
            "reset-high-water",
            "--store",
            &url,
            "--floor",
            "--expected",
            expected,
            "--lower-to",
            "7",
            "--reason",
            "another scale",
            "--yes",
        ])
    };
    assert_eq!(lower("8").status.code(), Some(1));
    let lowered = lower(&floor);
    assert!(lowered.status.success(), "{lowered:?}");
    let now = store.admin().floor().await.unwrap();
    assert_eq!(now, Some(FencingToken::new(7).unwrap()));
}

#[tokio::test]
async fn a_gateway_forgets_idle_marks_by_itself() {
    let (_directory, url, store) = idle("memory").await;
    let _gateway = Gateway::start_with(&["--lock", "memory:", "--store", &url]).await;
    let resource = name("order:1");
    until("the mark is forgotten", async || {
        store.high_water(&resource).await.unwrap().is_none()
    })
    .await;
    // The other one keeps it.
    let (_directory, url, store) = idle("memory").await;
    let never = [
        "--lock",
        "memory:",
        "--store",
        &url,
        "--forget-after",
        "never",
    ];
    let gateway = Gateway::start_with(&never).await;
    drop(gateway);
    assert_eq!(mark(&store, "order:1").await, IDLE);
}
