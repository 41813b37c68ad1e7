//! Operators look at jobs, and have a slot run again, from the command line.

use std::time::Duration;

use e2e::servers::postgres_database;
use fenced_store::{FenceError, PgFencedStore, PgProtected, ProtectedError, jobs::JobOutcome};
use lock_core::RetryPolicy;
use sqlx::PgPool;

use crate::operator_commands::{object, run};

const MONDAY: &str = "2026-11-23T02:00:00Z";
const TUESDAY: &str = "2026-11-24T02:00:00Z";

async fn works(jobs: &PgProtected, slot: &str) -> JobOutcome<()> {
    let once = jobs.once("night", slot);
    once.run(async |_| Ok::<_, ProtectedError>(()))
        .await
        .unwrap()
}

#[tokio::test]
async fn slots_are_listed_tried_again_and_forgotten() {
    let database = postgres_database().await;
    let store = PgFencedStore::new(PgPool::connect(database.url()).await.unwrap());
    store.migrate().await.unwrap();
    let jobs = palisade::one_database(store).await.unwrap();
    let of = ["--store", database.url()];
    let empty = run(&[&["jobs", "list"][..], &of].concat()).await;
    assert_eq!(
        String::from_utf8_lossy(&empty.stdout).trim(),
        "no job has run"
    );

    assert!(works(&jobs, MONDAY).await.is_done());
    let later = RetryPolicy::fixed(Duration::from_secs(600));
    let once = jobs.once("night", TUESDAY).back_off(later);
    let failed = once.run(async |_| Err::<(), ProtectedError>(FenceError::Aborted.into()));
    failed.await.unwrap_err();

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
    assert_eq!(below["below"], TUESDAY);
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
