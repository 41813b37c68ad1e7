//! Operators look at a lock service and end a lease from the command line.

use std::process::Output;

use e2e::servers::{Etcd, redis};
use fenced_store::{FenceError, FencedLocks, SqliteFencedStore};
use serde_json::Value;
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};

use crate::{exit_codes::command, gateway::Gateway};

pub(crate) async fn run(arguments: &[&str]) -> Output {
    let mut command = command(arguments);
    let output = tokio::task::spawn_blocking(move || command.output());
    output.await.unwrap().unwrap()
}

/// The JSON object that the command prints.
pub(crate) async fn object(arguments: &[&str]) -> Value {
    let output = run(&[arguments, &["--json"]].concat()).await;
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Catches: a command that shows another lease or the secret of a holder, or ends the lease and
/// leaves its token valid.
#[tokio::test]
async fn a_holder_that_hangs_is_found_and_shut_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("accounts.db");
    let (lock, store) = (redis().await.url(), format!("sqlite:{}", file.display()));
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(SqliteFencedStore::recommended(options)).await;
    let fenced = SqliteFencedStore::new(pool.unwrap());
    fenced.migrate().await.unwrap();
    let accounts = FencedLocks::new(palisade::connect(lock).await.unwrap(), fenced);
    let resource = format!("account:{:016x}", rand::random::<u64>());
    let free = run(&["inspect", "--lock", lock, &resource]).await;
    let free = (free.status.code(), String::from_utf8(free.stdout).unwrap());
    assert_eq!(free, (Some(0), format!("{resource}: free\n")));
    let guard = accounts
        .acquire(resource.as_str())
        .metadata("node 7")
        .await
        .unwrap();
    let secret = guard.sequencer().holder().expose();

    let listed = object(&["list", "--lock", lock]).await;
    let leases = listed["leases"].as_array().unwrap();
    let ours = leases
        .iter()
        .find(|lease| lease["resource"] == resource)
        .unwrap();
    let inspected = object(&["inspect", "--lock", lock, &resource]).await;
    assert_eq!(
        inspected["holder"]["fingerprint"],
        ours["holder"]["fingerprint"]
    );
    assert_eq!(ours["holder"]["metadata"], "node 7");
    assert_eq!(ours["holder"]["token"], guard.token().get());
    assert!(!listed.to_string().contains(&secret), "{listed}");
    let words = run(&["inspect", "--lock", lock, &resource]).await;
    let words = String::from_utf8(words.stdout).unwrap();
    assert!(words.contains("(node 7), token "), "{words}");

    let force = [
        "force-release",
        "--lock",
        lock,
        "--store",
        &store,
        &resource,
    ];
    let unsure = run(&force).await;
    assert_eq!(unsure.status.code(), Some(2), "{unsure:?}");
    let as_another = [&force[..], &["--yes", "--issuer", "another"]].concat();
    let as_another = run(&as_another).await;
    assert_eq!(as_another.status.code(), Some(2), "{as_another:?}");
    let inspection = accounts.locks().inspect(resource.as_str()).await.unwrap();
    assert!(inspection.holder.is_some(), "its lease has ended");
    guard.begin().await.unwrap().rollback().await.unwrap();
    let forced = object(&[&force[..], &["--yes"]].concat()).await;
    assert_eq!(forced["token"], guard.token().get());
    let refused = accounts.store().begin(guard.sequencer()).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused}");
    let again = object(&[&force[..], &["--yes"]].concat()).await;
    assert_eq!(again["released"], false);
}

/// Catches: a lease that is ended before the store is known to be one, such as that of another
/// service by mistake.
#[tokio::test]
async fn with_a_store_without_tables_no_holder_loses_a_lease() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.db");
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true);
    SqlitePool::connect_with(options).await.unwrap();
    let (lock, store) = (redis().await.url(), format!("sqlite:{}", file.display()));
    let locks = palisade::connect(lock).await.unwrap();
    let resource = format!("account:{:016x}", rand::random::<u64>());
    let guard = locks.acquire(resource.as_str()).await.unwrap();
    let arguments = [
        "force-release",
        "--lock",
        lock,
        "--store",
        &store,
        "--yes",
        &resource,
    ];
    let refused = run(&arguments).await;
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(
        said.contains("--store") && !said.contains("down?"),
        "{said}"
    );
    let inspection = locks.inspect(resource.as_str()).await.unwrap();
    assert_eq!(
        inspection.holder.map(|holder| holder.token),
        Some(guard.token())
    );
}

/// Catches: a lease that cannot be ended before etcd has space again.
#[tokio::test]
async fn on_an_etcd_without_space_operators_look_and_leases_end() {
    let etcd = Etcd::start().await;
    let gateway = Gateway::start_on(&etcd.url()).await;
    let token = gateway.token("released", 300_000).await;
    gateway.token("forced", 300_000).await;
    etcd.set_without_space(true).await;
    let released = gateway.release("released", &token).await;
    assert_eq!(released.status, 204, "{released:?}");
    let (lock, store) = (
        etcd.url(),
        format!("sqlite:{}", gateway.database().display()),
    );
    let of =
        |command, more: &[&'static str]| [&[command, "--lock", lock.as_str()][..], more].concat();
    let listed = object(&of("list", &[])).await;
    assert_eq!(listed["leases"].as_array().unwrap().len(), 1, "{listed}");
    let held = object(&of("inspect", &["forced"])).await;
    assert!(held["holder"]["token"].is_u64(), "{held}");
    let force = [
        &of("force-release", &["--yes", "forced"])[..],
        &["--store", &store],
    ]
    .concat();
    let forced = object(&force).await;
    assert_eq!(forced["released"], true, "{forced}");
    let found = run(&of("doctor", &[])).await;
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(found.contains("disarm the alarm"), "{found}");
    etcd.set_without_space(false).await;
    gateway.token("forced", 300_000).await;
}
