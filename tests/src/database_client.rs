//! The databases' own clients, which know nothing about this project.

use std::process::Stdio;

use sqlx::mysql::MySqlConnectOptions;
use tokio::{io::AsyncWriteExt, process::Command};

/// Runs a script in `psql`, up to its first error. Returns whether it succeeded, and its output.
///
/// # Panics
/// If it cannot be started.
pub async fn psql(url: &str, script: &str) -> (bool, String) {
    let settings = ["--set=ON_ERROR_STOP=1", "--set=VERBOSITY=verbose"];
    let mut psql = Command::new("psql");
    psql.args(["--no-psqlrc", for_libpq(url)]).args(settings);
    answers(psql, script).await
}

/// Everything in a Postgres database, as statements. The arguments are those of `pg_dump`.
///
/// # Panics
/// If it cannot be started, or fails.
pub async fn pg_dump(url: &str, arguments: &[&str]) -> String {
    let mut dump = Command::new("pg_dump");
    dump.args(["--no-password", for_libpq(url)]).args(arguments);
    let (done, dump) = answers(dump, "").await;
    assert!(done, "{dump}");
    dump
}

/// Runs a script in `mariadb`, up to its first error. Returns whether it succeeded, and its output.
///
/// # Panics
/// If it cannot be started, or the URL has no user, password or database.
pub async fn mariadb(url: &str, script: &str) -> (bool, String) {
    let options: MySqlConnectOptions = url.parse().unwrap_or_else(|_| panic!("not a URL"));
    let login = url
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('@'));
    let (user, password) = login
        .and_then(|(login, _)| login.split_once(':'))
        .unwrap_or_else(|| panic!("no user and password in the URL"));
    let database = options
        .get_database()
        .unwrap_or_else(|| panic!("no database in the URL"));
    let mut client = Command::new("mariadb");
    client
        .args(["--no-defaults", "--skip-ssl", "--protocol=tcp"])
        .arg(format!("--host={}", options.get_host()))
        .arg(format!("--port={}", options.get_port()))
        .arg(format!("--user={user}"))
        .arg(database)
        .env("MYSQL_PWD", password);
    answers(client, script).await
}

/// Runs a script in `sqlite3`, up to its first error. Returns whether it succeeded, and its output.
///
/// # Panics
/// If it cannot be started.
pub async fn sqlite3(file: &std::path::Path, script: &str) -> (bool, String) {
    let mut client = Command::new("sqlite3");
    client.arg("-bail").arg(file);
    answers(client, script).await
}

/// The URL without the parameters that only sqlx knows.
fn for_libpq(url: &str) -> &str {
    url.split_once('?').map_or(url, |(url, _)| url)
}

async fn answers(mut client: Command, input: &str) -> (bool, String) {
    let mut child = client
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{client:?}: {error}: run scripts/test"));
    if let Some(mut stdin) = child.stdin.take() {
        // A client that has given up does not read the rest.
        drop(stdin.write_all(input.as_bytes()).await);
    }
    let output = child.wait_with_output().await;
    let output = output.unwrap_or_else(|error| panic!("{client:?}: {error}"));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.success(), text)
}
