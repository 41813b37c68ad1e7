//! Readers of the file, and programs that write it directly.

use std::fs;

use fenced_jobs::JobSlots;
use fenced_store::{FenceError, FencedStore, NotReady};
use lock_core::ResourceName;
use sqlx::{
    AssertSqlSafe, Executor, SqlitePool,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use crate::{
    file::SqliteFile,
    rule::{Harness, SqlHarness, claimed, fresh},
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
async fn a_copy_of_the_file_lets_no_reader_act_as_a_holder() {
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

/// A full disk is noticed only by a write. Another connection sees that the probe has written.
#[tokio::test]
async fn a_probe_writes_to_the_file_and_leaves_nothing() {
    let (world, _) = claimed::<SqliteFile>().await;
    let pool = world.pool_of_one().await;
    let number = async |query: &'static str| -> i64 {
        sqlx::query_scalar(query).fetch_one(&pool).await.unwrap()
    };
    let before = number("PRAGMA data_version").await;
    world.store().check_writable().await.unwrap();
    assert_ne!(number("PRAGMA data_version").await, before);
    let notes = number("SELECT count(*) FROM fenced_open_transaction").await;
    assert_eq!(notes, 0);
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

/// A program writes rows of jobs to the file directly, with values of every type.
/// Catches: a row that SQL can make and that keeps all others from being listed.
#[tokio::test]
async fn a_job_with_any_content_can_be_listed() {
    let world: SqliteFile = fresh().await;
    let store = world.store_of_one().await;
    for statement in [
        "INSERT INTO fenced_job_run (job, slot, done_token) VALUES ('a', 'a', 0), ('a', 'b', 'x'),
           ('a', 'c', 1e300), ('a', 'd', x'00')",
        "INSERT INTO fenced_job_run (job, slot, done_token, done_at) VALUES ('b', 'a', 1, 'never'),
           ('b', 'b', 1, 1e300), ('b', 'c', 1, x'FF')",
        "INSERT INTO fenced_job_run (job, slot, steps, attempts, retry_at) VALUES
           ('c', 'a', 'many', 1.5, 'soon')",
        "INSERT INTO fenced_job_run (job, slot, progress, last_error) VALUES
           ('d', 'a', x'FF00', CAST(x'61FF62' AS TEXT)), ('d', 'b', 1.5, 7)",
        "INSERT INTO fenced_job_run (job, slot) VALUES ('', ''), (x'FF', x'00'), (1, 2),
           (CAST(x'FF' AS TEXT), char(10)), ('zoe', 'ok')",
        "INSERT INTO fenced_job_run (job, slot, progress) VALUES
           ('long', 'a', replace(hex(zeroblob(1500000)), '0', 'x'))",
    ] {
        store.pool().execute(statement).await.unwrap();
    }
    let slots = store.job_slots(None, 100).await.unwrap();
    let listed = |job: &str| slots.iter().filter(|slot| slot.job == job).count();
    assert_eq!((slots.len(), listed("a"), listed("zoe")), (16, 4, 1));
    let error = slots
        .iter()
        .filter_map(|slot| slot.state.last_error.as_ref());
    assert_eq!(error.collect::<Vec<_>>(), ["a\u{fffd}b", "7"]);
    for slot in &slots {
        let progress = slot.state.progress.as_deref().unwrap_or_default();
        assert!(progress.len() <= 10_000, "{}", progress.len());
    }
    let whole = store.job_slot("long", "a").await.unwrap();
    assert_eq!(whole.progress.unwrap().len(), 3_000_000);
}

/// Catches: a mark with wrong values that stops the handover of all other marks.
#[tokio::test]
async fn a_mark_has_names_and_a_token() {
    let world: SqliteFile = fresh().await;
    let store = world.store();
    for (resource, token, issuer) in [
        ("''", "1", "'redis'"),
        ("x'61'", "1", "'redis'"),
        ("'two words'", "1", "'redis'"),
        ("'line' || char(10)", "1", "'redis'"),
        ("'back' || char(92)", "1", "'redis'"),
        ("'quo\"te'", "1", "'redis'"),
        ("CAST(x'FF' AS TEXT)", "1", "'redis'"),
        ("hex(zeroblob(200))", "1", "'redis'"),
        ("'r'", "0", "'redis'"),
        ("'r'", "1.5", "'redis'"),
        ("'r'", "'one'", "'redis'"),
        ("'r'", "1", "''"),
        ("'r'", "1", "'a/b'"),
        ("'r'", "1", "x'61'"),
    ] {
        let insert = format!(
            "INSERT INTO fenced_high_water_mark (resource, token, holder, issuer)
             VALUES ({resource}, {token}, '', {issuer})"
        );
        let refused = store.pool().execute(AssertSqlSafe(insert.clone())).await;
        assert!(refused.is_err(), "{insert}");
    }
    // The control.
    let mark = "INSERT INTO fenced_high_water_mark (resource, token, holder, issuer)
        VALUES ('job:[a]~!', 999999999999999, '', 'redis-eu.1:prod_x')";
    store.pool().execute(mark).await.unwrap();
    let resource = ResourceName::new("job:[a]~!").unwrap();
    assert!(store.high_water(&resource).await.unwrap().is_some());
}
