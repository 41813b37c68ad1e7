//! Operators set a mark by hand, from the command line.

use std::process::{Command, Output};

use e2e::warden::workspace_binary;
use fenced_store::{FencedStore, Plausibility, SqliteFencedStore};
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(workspace_binary("demo-service").unwrap());
    command.env_remove("PALISADE_STORE").env_remove("RUST_LOG");
    command.args(arguments).output().unwrap()
}

fn reset(store: &str, arguments: &[&str]) -> Output {
    let command = ["reset-high-water", "--store", store, "account:42"];
    run(&[&command[..], arguments].concat())
}

#[tokio::test]
async fn a_mark_is_lowered_and_a_store_handed_over_from_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("accounts.db");
    let url = format!("sqlite:{}", file.display());
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(SqliteFencedStore::recommended(options))
        .await
        .unwrap();
    let store = FencedStore::new(pool).plausibility(Plausibility::unchecked());
    store.migrate().await.unwrap();
    let resource = ResourceName::new("account:42").unwrap();
    let issuer = Issuer::new("redis").unwrap();
    let poison = Sequencer::new(
        issuer,
        resource.clone(),
        FencingToken::MAX,
        Holder::random(),
    );
    store.claim(&poison).await.unwrap();
    let mark = async || {
        store
            .high_water(&resource)
            .await
            .unwrap()
            .unwrap()
            .token()
            .get()
    };

    let max = FencingToken::MAX.to_string();
    let lower = ["--lower-to", "33", "--reason", "poisoned", "--json"];
    for (mistake, code) in [
        (["--expected", &max, "--confirm", "account:43"], 2),
        (["--expected", "34", "--confirm", "account:42"], 1),
    ] {
        let output = reset(&url, &[&mistake[..], &lower].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("nothing was changed"), "{said}");
        assert_eq!(mark().await, FencingToken::MAX.get());
    }
    let up = [
        "--expected",
        &max,
        "--confirm",
        "account:42",
        "--raise-to",
        "33",
        "--reason",
        "x",
    ];
    assert_eq!(reset(&url, &up).status.code(), Some(2));
    let meant = ["--expected", &max, "--confirm", "account:42"];
    let output = reset(&url, &[&meant[..], &lower].concat());
    assert!(output.status.success(), "{output:?}");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((said["to"].as_u64(), mark().await), (Some(33), 33));
    hand_over(&url);
    assert_eq!(mark().await, 500);
}

/// To `etcd`, with a mistake before and another one after it.
fn hand_over(url: &str) {
    let seal = |to: &str, confirm: &str| {
        let from = [
            "seal", "--store", url, "--from", "redis", "--to", to, "--above", "500",
        ];
        run(&[
            &from[..],
            &["--reason", "moved", "--json", "--confirm", confirm],
        ]
        .concat())
    };
    assert_eq!(seal("etcd", "redis").status.code(), Some(2));
    let output = seal("etcd", "etcd");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(
        seal("zookeeper", "zookeeper").status.code(),
        Some(1),
        "it is etcd's now"
    );
}
