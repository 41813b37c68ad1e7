//! Every name that the store's side documents is exported.

use std::collections::BTreeMap;

use fenced_store::Protected;
use lock_core::{FencingToken, InitialToken, metric};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use crate::{
    file::SqliteFile,
    rule::{Harness, fresh, grant_by},
};

fn counters(exported: &Snapshotter) -> BTreeMap<String, u64> {
    let snapshot = exported.snapshot().into_vec().into_iter();
    let counters = snapshot.filter_map(|(key, _, description, value)| match value {
        DebugValue::Counter(count) if metric_of_store(key.key().name()) => {
            assert!(description.is_some(), "{key:?} is not described");
            Some((key.key().name().to_owned(), count))
        }
        _ => None,
    });
    counters.collect()
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
    let nothing = metric::OF_STORES
        .iter()
        .map(|metric| (metric.name.to_owned(), 0));
    assert_eq!(counters(&exported), nothing.collect());

    // The lock service is about to issue this token a second time.
    let first = grant_by("memory", "account:42", 1);
    world.store().claim(&first).await.unwrap();
    drop(accounts.acquire("account:42").await.unwrap());
    // SQLite has no sessions that could be ended.
    let times = |metric| u64::from(metric != metric::TERMINATIONS);
    let once = metric::OF_STORES
        .iter()
        .map(|metric| (metric.name.to_owned(), times(*metric)));
    assert_eq!(counters(&exported), once.collect());
}
