//! Every metric that the documentation of the store names is exported.

use std::{collections::BTreeMap, time::Duration};

use fenced_jobs::Jobs;
use fenced_store::{FenceError, FencedLockError, FencedLocks};
use lock_core::{FencingToken, InitialToken, RetryPolicy, backend::metric};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use crate::{
    file::SqliteFile,
    rule::{Harness, fresh, grant_by},
};

/// The counters by their names, or by the reason or the result if there is one.
fn counters(exported: &Snapshotter) -> BTreeMap<String, u64> {
    let snapshot = exported.snapshot().into_vec().into_iter();
    let counters = snapshot.filter_map(|(key, _, description, value)| match value {
        DebugValue::Counter(count) if metric_of_store(key.key().name()) => {
            assert!(description.is_some(), "{key:?} is not described");
            let key = key.key();
            let reason = key.labels().next();
            let name = reason
                .filter(|label| label.key() != "backend")
                .map_or(key.name(), metrics::Label::value);
            let is_observed = key.name() == metric::OBSERVED.name;
            let observed = if is_observed { "observed " } else { "" };
            Some((format!("{observed}{name}"), count))
        }
        _ => None,
    });
    counters.collect()
}

/// All counters that the store exports: the given ones with these values, and the others with 0.
fn with(happened: &[(&str, u64)]) -> BTreeMap<String, u64> {
    let reasons = [
        "stale",
        "duplicate",
        "not_claimed",
        "mark_lost",
        "wrong_issuer",
        "implausible",
    ];
    let observed = [
        "observed stale",
        "observed duplicate",
        "observed not_claimed",
        "observed mark_lost",
        "observed wrong_issuer",
        "observed implausible",
        "observed accepted",
        "observed unknown",
    ];
    let results = ["ran", "done", "held", "backing_off", "failed", "lost"];
    let others = [
        metric::FLOOR_REPAIRS,
        metric::TERMINATIONS,
        metric::JOBS_TAKEN_OVER,
        metric::JOBS_LATE,
    ];
    let others = others.map(|metric| metric.name);
    let all = reasons.into_iter().chain(observed);
    let all = all.chain(results).chain(others).chain(["mark", "lease"]);
    let all = all.map(|name| (name, 0));
    let counted = all.chain(happened.iter().copied());
    counted
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

fn metric_of_store(name: &str) -> bool {
    metric::OF_STORES.iter().any(|metric| metric.name == name)
}

/// Catches: a refusal or a repair that no counter shows, or that has no description.
#[tokio::test]
async fn each_counter_for_an_alert_begins_at_zero_and_counts() {
    let recorder = DebuggingRecorder::new();
    let exported = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let locks = palisade::connect("memory:")
        .initial_token(InitialToken::At(FencingToken::MIN))
        .await
        .unwrap();
    let world: SqliteFile = fresh().await;
    let accounts = FencedLocks::new(locks, world.store().clone());
    assert_eq!(counters(&exported), with(&[]));

    // The lock service is about to issue this token a second time.
    let first = grant_by("memory", "account:42", 1);
    world.store().claim(&first).await.unwrap();
    drop(accounts.acquire("account:42").await.unwrap());
    let repaired = (metric::FLOOR_REPAIRS.name, 1);
    assert_eq!(counters(&exported), with(&[("duplicate", 1), repaired]));

    // The acquisition above has claimed a greater token. A snapshot resets the counters.
    for (issuer, token) in [
        ("memory", 1),
        ("other", 9),
        ("memory", FencingToken::MAX.get()),
    ] {
        let refused = grant_by(issuer, "account:42", token);
        world.store().claim(&refused).await.unwrap_err();
    }
    let never = grant_by("memory", "account:7", 1);
    world.store().begin(&never).await.unwrap_err();
    let refused = ["stale", "wrong_issuer", "implausible", "not_claimed"];
    let refused = refused.map(|reason| (reason, 1));
    assert_eq!(counters(&exported), with(&refused));

    // A store that observes refuses nothing.
    let observer = world.store().observe().await.unwrap();
    let _told = observer.look(&never).await;
    let _told = observer.claim(&never).await;
    let observed = ["observed not_claimed", "observed accepted"];
    assert_eq!(
        counters(&exported),
        with(&observed.map(|result| (result, 1)))
    );
}

/// Catches: an outcome of a job that is counted as another, or not at all.
#[tokio::test]
async fn the_outcome_of_a_slot_is_counted() {
    let recorder = DebuggingRecorder::new();
    let exported = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let world: SqliteFile = fresh().await;
    let locks = palisade::connect("memory:").await.unwrap();
    let jobs = FencedLocks::new(locks, world.store().clone());
    let fails = async |slot: &str| {
        let soon = RetryPolicy::fixed(Duration::from_secs(600));
        let once = jobs.once("night", slot).back_off(soon);
        once.steps(async |job| {
            job.step(async |_| Ok::<_, FencedLockError>(1)).await?;
            Err::<(), _>(FencedLockError::from(FenceError::Aborted))
        })
        .await
    };
    fails("1").await.unwrap_err();
    let _told = fails("1").await.unwrap();
    assert!(jobs.retry_job("night", "1", Duration::ZERO).await.unwrap());
    let taken_over = fails("1").await;
    taken_over.unwrap_err();
    let run = async |slot: &str| {
        let once = jobs.once("night", slot);
        once.run(async |_| Ok::<_, FencedLockError>(()))
            .await
            .unwrap()
    };
    for _ in 0..2 {
        let _told = run("2").await;
    }
    let held = jobs.locks().acquire("job:night").await.unwrap();
    let _told = run("3").await;
    drop(held);
    let taken_over = (metric::JOBS_TAKEN_OVER.name, 1);
    let results = [
        ("ran", 1),
        ("done", 1),
        ("held", 1),
        ("backing_off", 1),
        ("failed", 2),
    ];
    let expected = with(&[&results[..], &[taken_over]].concat());
    assert_eq!(counters(&exported), expected);
}
