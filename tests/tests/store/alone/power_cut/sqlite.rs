//! On SQLite, where the client is the database.

use std::collections::BTreeSet;

use e2e::process::Process;
use fenced_store::{FencedStore, SqliteFencedStore};
use lock_core::ResourceName;
use serde::Deserialize;
use sqlx::{Executor, SqlitePool, sqlite::SqliteConnectOptions};

/// A message of the client.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Claimed(u64),
    Committed(i64),
}

const ROUNDS: u64 = 8;

/// A process is killed in the middle of its commits, each time a little later.
#[tokio::test]
async fn answered_commits_of_sqlite_are_there_after_its_process_was_killed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("journal.db");
    let url = format!("sqlite:{}", file.display());
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .create_if_missing(true);
    let options = SqliteFencedStore::recommended(options);
    let pool = SqlitePool::connect_with(options).await.unwrap();
    let store = FencedStore::new(pool.clone());
    store.migrate().await.unwrap();
    let table = "CREATE TABLE journal (number INTEGER)";
    pool.execute(table).await.unwrap();

    let resource = ResourceName::new("journal").unwrap();
    let mut told = BTreeSet::new();
    for round in 1..=ROUNDS {
        let token = round.to_string();
        let arguments = ["commits", "--store", &url, "--token", &token];
        let mut client = Process::spawn("e2e-worker", arguments);
        let claimed: Said = client.event().await;
        assert!(matches!(claimed, Said::Claimed(token) if token == round));
        for _ in 0..3 * round {
            if let Said::Committed(number) = client.event().await {
                told.insert(number);
            }
        }
        client.kill().await;

        let stored = sqlx::query_scalar("SELECT number FROM journal");
        let stored: Vec<i64> = stored.fetch_all(&pool).await.unwrap();
        let stored: BTreeSet<i64> = stored.into_iter().collect();
        assert_eq!(told.difference(&stored).count(), 0);
        let mark = store.high_water(&resource).await.unwrap().unwrap();
        assert_eq!(mark.token().get(), round);
        let sound: String = sqlx::query_scalar("PRAGMA integrity_check")
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(sound, "ok");
    }
}
