//! Every documented name is exported, with the labels that the documentation says.
#![cfg(feature = "metrics")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    future::IntoFuture,
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;
use lock_core::{
    Attempt, InitialToken, LockManager, Operation, RetryPolicy, Ttl,
    backend::{
        Runtime,
        metric::{self, MetricKind},
    },
    memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, ManualClock};
use metrics::with_local_recorder;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

const TTL: Ttl = Ttl::secs(9);

struct World {
    clock: ManualClock,
    chaos: Chaos,
    locks: LockManager,
    exported: Snapshotter,
}

/// The exported values, by name and by the labels other than `backend`.
type Exported = BTreeMap<(String, String), DebugValue>;

fn world() -> World {
    let recorder = DebuggingRecorder::new();
    let clock = ManualClock::new();
    let timer: Arc<dyn Runtime> = Arc::new(clock.clone());
    let service = MemoryBackend::new(Arc::clone(&timer), InitialToken::Clock);
    let chaos = Chaos::new(Arc::new(service), Arc::clone(&timer));
    let builder = LockManager::builder();
    let build = || builder.build(chaos.clone()).unwrap();
    World {
        locks: with_local_recorder(&recorder, build),
        exported: recorder.snapshotter(),
        clock,
        chaos,
    }
}

impl World {
    fn exported(&self) -> Exported {
        let snapshot = self.exported.snapshot().into_vec().into_iter();
        let exported = snapshot.map(|(key, unit, description, value)| {
            let (_, key) = key.into_parts();
            assert!(
                unit.is_some() && description.is_some(),
                "{key} is not described"
            );
            let labels = key.labels().map(|label| (label.key(), label.value()));
            let (backend, others): (Vec<_>, Vec<_>) =
                labels.partition(|(label, _)| *label == "backend");
            assert_eq!(backend, [("backend", "memory")], "{key}");
            let others: Vec<_> = others
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            ((key.name().to_owned(), others.join(",")), value)
        });
        exported.collect()
    }

    async fn after(&self, time: Duration) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.clock.advance(time);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    /// Makes each event happen that is counted: once, unless a comment says otherwise.
    async fn live(&self) {
        // Two grants, one of them to a waiter after a second. One renewal. Two leases that are held
        // for a time.
        let first = self.locks.acquire("r").ttl(TTL).await.unwrap();
        let mut second = Box::pin(self.locks.acquire("r").ttl(TTL).into_future());
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(self.locks.stats().waiting, 1);
        self.after(Duration::from_secs(1)).await;
        first.release().await.unwrap();
        let second = second.await.unwrap();
        self.after(TTL.get() / 3).await;
        // A timeout and a failure.
        let poll = self
            .locks
            .acquire("r")
            .retry(RetryPolicy::fixed(TTL.get()).limit(0));
        assert!(matches!(poll.try_acquire().await, Ok(Attempt::Held { .. })));
        self.chaos.next(Operation::Acquire, Fault::DropRequest);
        let wait = Duration::ZERO;
        self.locks.acquire("r").wait(wait).await.unwrap_err();
        // A renewal that fails, the loss that follows, and a release that is given up.
        self.chaos.always(Operation::Renew, Fault::DropRequest);
        self.chaos.always(Operation::Release, Fault::DropRequest);
        for _ in 0..9 {
            self.after(TTL.get() / 9).await;
        }
        drop(second);
        for _ in 0..20 {
            self.after(TTL.get() / 9).await;
        }
    }
}

/// Catches: a metric that is renamed, that is of another kind, or that is missing until its first
/// event.
#[tokio::test]
async fn every_documented_name_is_exported_and_no_other() {
    let world = world();
    world.live().await;
    let exported = world.exported();
    let names: BTreeSet<_> = exported.keys().map(|(name, _)| name.as_str()).collect();
    let documented: BTreeSet<_> = metric::OF_LOCKS.iter().map(|metric| metric.name).collect();
    assert_eq!(names, documented);
    for metric in metric::OF_LOCKS {
        let mut values = exported.iter().filter(|((name, _), _)| name == metric.name);
        assert!(
            values.all(|(_, value)| matches!(
                (metric.kind, value),
                (MetricKind::Counter, DebugValue::Counter(_))
                    | (MetricKind::Gauge, DebugValue::Gauge(_))
                    | (MetricKind::Histogram, DebugValue::Histogram(_))
            )),
            "{}",
            metric.name
        );
    }
}

/// Catches: an event that is counted twice or not at all, a level that does not fall again, a time
/// in milliseconds.
#[tokio::test]
async fn the_counters_agree_with_the_events_and_with_the_stats() {
    let world = world();
    world.live().await;
    let (exported, stats) = (world.exported(), world.locks.stats());
    for (name, labels, here, times) in [
        ("palisade_grants_total", "", stats.grants, 2),
        ("palisade_handoffs_total", "", stats.handoffs, 1),
        ("palisade_acquire_timeouts_total", "", stats.timeouts, 1),
        ("palisade_acquire_failures_total", "", stats.failures, 1),
        ("palisade_renewals_total", "", stats.renewals, 1),
        ("palisade_losses_total", "reason=expired", stats.losses, 1),
        ("palisade_abandoned_total", "", stats.abandoned, 1),
    ] {
        let there = counter(&exported, name, labels);
        assert_eq!((here, there), (times, times), "{name} {labels}");
    }
    let failures = counter(&exported, "palisade_renewal_failures_total", "");
    assert_eq!(failures, stats.renewal_failures);
    assert!(failures > 1);

    assert_eq!((stats.held, stats.waiting), (0, 0));
    let value = |name: &str| &exported[&(name.to_owned(), String::new())];
    for name in ["palisade_held", "palisade_queue_length"] {
        let gauge = value(name);
        assert!(
            matches!(gauge, DebugValue::Gauge(now) if now.0 == 0.0),
            "{name}: {gauge:?}"
        );
    }
    for (name, seconds) in [
        ("palisade_acquire_wait_seconds", [0.0, 1.0]),
        ("palisade_hold_seconds", [1.0, 12.0]),
    ] {
        let DebugValue::Histogram(times) = value(name) else {
            panic!("{name}");
        };
        let times: Vec<f64> = times.iter().map(|time| time.0).collect();
        assert_eq!(times, seconds, "{name}");
    }
}

fn counter(exported: &Exported, name: &str, labels: &str) -> u64 {
    match exported[&(name.to_owned(), labels.to_owned())] {
        DebugValue::Counter(count) => count,
        ref other => panic!("{name}: {other:?}"),
    }
}
