//! Readers of the file, and programs that write it directly.

use std::fs;

use fenced_store::{FenceError, FencedStore, NotReady};
use sqlx::{
    Executor, SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use crate::{
    file::SqliteFile,
    rule::{Harness, claimed, fresh},
};

/// The file, its log and its index, as a backup would have them.
fn files_of(world: &SqliteFile) -> Vec<u8> {
    let files = fs::read_dir(world.directory()).unwrap();
    let files = files.map(|file| fs::read(file.unwrap().path()).unwrap());
    files.collect::<Vec<_>>().concat()
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn a_copy_of_the_file_lets_nobody_act_as_a_holder() {
    let (world, own) = claimed::<SqliteFile>().await;
    let mut tx = world.store().begin(&own).await.unwrap();
    SqliteFile::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    let copy = files_of(&world);
    // The control: the mark is there.
    assert!(has(&copy, &own.holder().kept_digest()));
    for presented in [own.holder().digest(), own.holder().expose()] {
        assert!(!has(&copy, &presented), "{presented}");
    }
}

#[tokio::test]
async fn a_file_that_can_only_be_read_is_not_writable() {
    let (world, own) = claimed::<SqliteFile>().await;
    let store = world.store();
    store.check_writable().await.unwrap();
    let options = store.pool().connect_options();
    let read_only = SqliteConnectOptions::clone(&options).read_only(true);
    let read_only = SqlitePool::connect_with(read_only).await.unwrap();
    let query_only = SqlitePoolOptions::new().after_connect(|connection, _| {
        Box::pin(async move { connection.execute("PRAGMA query_only = ON").await.map(drop) })
    });
    let query_only = query_only.connect_with((*options).clone()).await.unwrap();
    for pool in [read_only, query_only] {
        let reader = FencedStore::new(pool);
        // The control: it can be read.
        assert!(reader.high_water(own.resource()).await.unwrap().is_some());
        let refused = reader.check_writable().await.unwrap_err();
        assert!(
            matches!(refused, FenceError::NotReady(NotReady::ReadOnly { .. })),
            "{refused:?}"
        );
    }
}

/// Catches: a probe that takes another writer for a file that takes no writes.
#[tokio::test]
async fn a_file_that_another_one_writes_is_writable() {
    let world: SqliteFile = fresh().await;
    let mut writer = world.store().pool().acquire().await.unwrap();
    writer.execute("BEGIN IMMEDIATE").await.unwrap();
    world.impatient().await.check_writable().await.unwrap();
    writer.execute("ROLLBACK").await.unwrap();
}
