//! Operators look at jobs, and have a slot run again, from the command line.

use std::time::Duration;

use e2e::servers::postgres_database;
use fenced_jobs::{JobOutcome, Jobs};
use fenced_store::{
    FenceError, FencedLockError, FencedTx, PgFencedLocks, PgFencedStore, SqliteFencedStore,
};
use lock_core::RetryPolicy;
use sqlx::{Executor, PgPool, Postgres, SqlitePool};

use crate::operator_commands::{object, run};

const MONDAY: &str = "2026-11-23T02:00:00Z";
const TUESDAY: &str = "2026-11-24T02:00:00Z";

async fn works(jobs: &PgFencedLocks, slot: &str) -> JobOutcome<()> {
    let once = jobs.once("night", slot);
    once.run(async |_| Ok::<_, FencedLockError>(()))
        .await
        .unwrap()
}

async fn fails(_: &mut FencedTx<Postgres>) -> Result<(), FencedLockError> {
    Err(FenceError::Aborted.into())
}

#[tokio::test]
async fn slots_are_listed_tried_again_and_forgotten() {
    let database = postgres_database().await;
    let store = PgFencedStore::new(PgPool::connect(database.url()).await.unwrap());
    store.migrate().await.unwrap();
    let jobs = palisade::open(store).await.unwrap();
    let of = ["--store", database.url()];
    let empty = run(&[&["jobs", "list"][..], &of].concat()).await;
    assert_eq!(
        String::from_utf8_lossy(&empty.stdout).trim(),
        "no job has run"
    );

    assert!(works(&jobs, MONDAY).await.is_done());
    let later = RetryPolicy::fixed(Duration::from_secs(600));
    let once = jobs.once("night", TUESDAY).back_off(later);
    once.run(fails).await.unwrap_err();

    let listed = object(&[&["jobs", "list"][..], &of, &["night"]].concat()).await;
    let states = listed["slots"].as_array().unwrap();
    let states: Vec<_> = states.iter().map(|slot| &slot["state"]).collect();
    assert_eq!(states, ["done", "backing_off"]);
    let show = [&["jobs", "show"][..], &of, &["night", TUESDAY]].concat();
    let shown = object(&show).await;
    assert_eq!(
        (&shown["failures"], &shown["token"]),
        (&1.into(), &().into())
    );
    let words = run(&show).await;
    let words = String::from_utf8(words.stdout).unwrap();
    assert!(words.contains("failed 1 times"), "{words}");

    for (slot, code) in [(TUESDAY, 0), (TUESDAY, 0), (MONDAY, 1)] {
        let retried = run(&[&["jobs", "retry"][..], &of, &["night", slot]].concat()).await;
        assert_eq!(retried.status.code(), Some(code), "{retried:?}");
    }
    assert!(matches!(works(&jobs, TUESDAY).await, JobOutcome::Ran(..)));

    let forget = [&["jobs", "forget"][..], &of, &["night"]].concat();
    let unsure = run(&[&forget[..], &[MONDAY]].concat()).await;
    assert_eq!(unsure.status.code(), Some(2), "{unsure:?}");
    let below = object(&[&forget[..], &["--below", TUESDAY, "--yes"]].concat()).await;
    assert_eq!(
        (&below["below"], &below["stopped_by"]),
        (&TUESDAY.into(), &().into())
    );
    assert!(matches!(works(&jobs, MONDAY).await, JobOutcome::Forgotten));
    object(&[&forget[..], &[TUESDAY, "--yes"]].concat()).await;
    assert!(matches!(works(&jobs, TUESDAY).await, JobOutcome::Ran(..)));
    for wrong in [
        &["invoice:7", "--yes"][..],
        &["--below", "invoice:7", "--yes"],
        &["--yes"],
    ] {
        let told = run(&[&forget[..], wrong].concat()).await;
        assert!(matches!(told.status.code(), Some(1 | 2)), "{told:?}");
    }
}

/// Catches: a report that everything was forgotten up to the requested time, although it was not.
#[tokio::test]
async fn forgetting_names_the_slot_that_is_in_its_way() {
    let database = postgres_database().await;
    let store = PgFencedStore::new(PgPool::connect(database.url()).await.unwrap());
    store.migrate().await.unwrap();
    let jobs = palisade::open(store).await.unwrap();
    for slot in ["2026-11-22T02:00:00Z", TUESDAY] {
        assert!(works(&jobs, slot).await.is_done());
    }
    let failed = jobs.once("night", MONDAY).run(fails);
    failed.await.unwrap_err();
    let forget = [
        "jobs",
        "forget",
        "--store",
        database.url(),
        "--yes",
        "night",
    ];
    let forget = [&forget[..], &["--below", "2026-12-01T00:00:00Z"]].concat();
    let told = object(&forget).await;
    assert_eq!(
        (&told["below"], &told["stopped_by"]),
        (&MONDAY.into(), &"not_done".into())
    );
    let words = run(&forget).await;
    let words = String::from_utf8(words.stdout).unwrap();
    assert!(words.contains(&format!("{MONDAY} is not done")), "{words}");

    let retry = ["jobs", "retry", "--store", database.url(), "night", MONDAY];
    object(&retry).await;
    assert!(works(&jobs, MONDAY).await.is_done());
    let told = object(&forget).await;
    assert_eq!(
        (&told["below"], &told["stopped_by"]),
        (&TUESDAY.into(), &"newest_done".into())
    );
}

/// A client writes such texts directly into the tables: into errors, into names, and as bytes.
/// Catches: a text that moves the cursor of an operator's terminal, or looks like another line.
#[tokio::test]
async fn a_job_with_any_content_is_one_line_and_hides_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!(
        "sqlite:{}?mode=rwc",
        folder.path().join("jobs.db").display()
    );
    let store = SqliteFencedStore::new(SqlitePool::connect(&url).await.unwrap());
    store.migrate().await.unwrap();
    for statement in [
        "INSERT INTO fenced_job_run (job, slot, attempts, last_error) VALUES
           ('night', '1', 1, 'no' || char(10) || 'night 2: done' || char(27, 155, 8238) || '[2J'),
           ('two' || char(10) || 'lines', char(27) || '[2J', 0, NULL), ('zoe', 'ok', 0, NULL)",
        "INSERT INTO fenced_job_run (job, slot, done_token) VALUES ('odd', x'FF', 'x')",
        // More jobs than are read at once, and in an order that is not the order of their texts.
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
         INSERT INTO fenced_job_run (job, slot) SELECT x'FF' || i, CAST(i AS BLOB) FROM n",
    ] {
        store.pool().execute(statement).await.unwrap();
    }
    let listed = run(&["jobs", "list", "--store", &url]).await;
    assert!(listed.status.success(), "{listed:?}");
    let text = String::from_utf8(listed.stdout).unwrap();
    let has = |line: &str| text.lines().any(|found| found == line);
    assert!(has("zoe ok: not done"), "{text}");
    let failed = r"night 1: not done, failed 1 times: no\nnight 2: done\u{1b}\u{9b}\u{202e}[2J";
    assert!(has(failed), "{text}");
    assert!(has(r"two\nlines \u{1b}[2J: not done"), "{text}");
    let other = |line: &&str| !line.contains(": not done") && !line.starts_with("odd ");
    assert_eq!(text.lines().find(other), None);
    let told = object(&["jobs", "list", "--store", &url]).await;
    let slots = told["slots"].as_array().unwrap();
    assert!(slots.iter().any(|slot| slot["job"] == "zoe"));
}
