//! Every name that the store's side documents is exported.

use std::collections::BTreeMap;

use fenced_store::Protected;
use lock_core::{FencingToken, InitialToken, metric};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use crate::{
    file::SqliteFile,
    rule::{Harness, fresh, grant_by},
};

/// By name, and by reason if there is one.
fn counters(exported: &Snapshotter) -> BTreeMap<String, u64> {
    let snapshot = exported.snapshot().into_vec().into_iter();
    let counters = snapshot.filter_map(|(key, _, description, value)| match value {
        DebugValue::Counter(count) if metric_of_store(key.key().name()) => {
            assert!(description.is_some(), "{key:?} is not described");
            let key = key.key();
            let reason = key.labels().find(|label| label.key() == "reason");
            let name = reason.map_or(key.name(), metrics::Label::value);
            Some((name.to_owned(), count))
        }
        _ => None,
    });
    counters.collect()
}

/// What the store exports, where these have happened so often and the others not at all.
fn with(happened: &[(&str, u64)]) -> BTreeMap<String, u64> {
    let reasons = [
        "stale",
        "duplicate",
        "not_claimed",
        "mark_lost",
        "wrong_issuer",
        "implausible",
    ];
    let others = [metric::FLOOR_REPAIRS, metric::TERMINATIONS].map(|metric| metric.name);
    let all = reasons.into_iter().chain(others).map(|name| (name, 0));
    let counted = all.chain(happened.iter().copied());
    counted
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

fn metric_of_store(name: &str) -> bool {
    metric::OF_STORES.iter().any(|metric| metric.name == name)
}

#[tokio::test]
async fn what_is_worth_an_alert_begins_at_nothing_and_is_counted() {
    let recorder = DebuggingRecorder::new();
    let exported = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let locks = palisade::connect("memory:")
        .initial_token(InitialToken::At(FencingToken::MIN))
        .await
        .unwrap();
    let world: SqliteFile = fresh().await;
    let accounts = Protected::new(locks, world.store().clone());
    assert_eq!(counters(&exported), with(&[]));

    // The lock service is about to issue this token a second time.
    let first = grant_by("memory", "account:42", 1);
    world.store().claim(&first).await.unwrap();
    drop(accounts.acquire("account:42").await.unwrap());
    let repaired = (metric::FLOOR_REPAIRS.name, 1);
    assert_eq!(counters(&exported), with(&[("duplicate", 1), repaired]));

    // The acquisition above has claimed a greater token. A snapshot begins to count anew.
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
}
