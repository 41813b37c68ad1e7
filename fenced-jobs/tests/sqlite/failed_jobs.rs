//! The note about work that has failed, and the time at which the work is due again.

use std::panic::AssertUnwindSafe;

use fenced_jobs::{JobSlots, Jobs, Standing};
use fenced_store::{FencedLockError, FencedLocks, SqliteFencedStore};
use futures_util::FutureExt;
use lock_core::Attempt;
use sqlx::Sqlite;

use crate::{
    file::SqliteFile,
    rule::{Harness, fresh},
};

async fn jobs() -> (SqliteFile, FencedLocks<Sqlite>) {
    let world: SqliteFile = fresh().await;
    let locks = palisade::connect("memory:").await.unwrap();
    let jobs = FencedLocks::new(locks, world.store().clone());
    (world, jobs)
}

async fn noted(store: &SqliteFencedStore, job: &str) -> String {
    let state = store.job_slot(job, "slot").await.unwrap();
    assert!(
        matches!(state.standing, Standing::BackingOff { .. }),
        "{state:?}"
    );
    state.last_error.unwrap_or_default()
}

/// Catches: a note that says that the database failed, and not why.
#[tokio::test]
async fn the_cause_of_a_failure_is_noted() {
    let (world, jobs) = jobs().await;
    let failed = jobs.once("a", "slot").run(async |tx| {
        sqlx::query("SELECT no_such_column FROM accounts")
            .execute(&mut **tx)
            .await?;
        Ok::<_, FencedLockError>(())
    });
    failed.await.map(drop).unwrap_err();
    let noted = noted(world.store(), "a").await;
    assert!(noted.contains("no_such_column"), "{noted}");
}

/// Catches: work that panics, and is repeated without a pause.
#[tokio::test]
async fn a_panic_is_noted_and_backed_off() {
    let (world, jobs) = jobs().await;
    let name = "a";
    let run = jobs.once(name, "slot").run(async |_| {
        panic!("boom {}", 1);
        #[expect(unreachable_code, reason = "it names the types")]
        Ok::<_, FencedLockError>(())
    });
    let panicked = AssertUnwindSafe(run).catch_unwind().await;
    assert!(panicked.is_err());
    // The lease was released before the panic went on.
    let lease = jobs.locks().try_acquire("job:a").await.unwrap();
    assert!(matches!(lease, Attempt::Granted(_)), "{lease:?}");
    let text = noted(world.store(), name).await;
    assert!(text.contains("panicked: boom 1"), "{text}");

    let steps = jobs.once("b", "slot").steps(async |_| {
        panic!("bang");
        #[expect(unreachable_code, reason = "it names the types")]
        Ok::<_, FencedLockError>(())
    });
    let panicked = AssertUnwindSafe(steps).catch_unwind().await;
    assert!(panicked.is_err());
    let text = noted(world.store(), "b").await;
    assert!(text.contains("panicked: bang"), "{text}");
}
