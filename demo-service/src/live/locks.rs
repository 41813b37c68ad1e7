use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use lock_core::{ErrorKind, LockManager};
use serde::Serialize;
use tokio::{sync::Mutex, time::timeout};

use crate::{
    duration::millis,
    gateway::{Traffic, TrafficCounts, lease_view, wire::InspectBody},
};

/// How many resources are shown: more than anybody reads, and few enough to be sent every second.
const SHOWN_MAX: usize = 100;

/// How long the lock service may take to list its resources.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks at the lock service for all visitors, at most once a second.
///
/// Cloning is cheap; clones share the last look.
#[derive(Clone, Debug)]
pub(super) struct LockWatch {
    locks: LockManager,
    traffic: Traffic,
    started: Instant,
    seen: Arc<Mutex<Option<Seen>>>,
}

/// The last look.
#[derive(Debug)]
struct Seen {
    at: Instant,
    /// As JSON.
    snapshot: Arc<str>,
}

/// The state of the lock service at one moment.
#[derive(Debug, Serialize)]
struct Snapshot {
    at_ms: u64,
    kind: &'static str,
    counts: TrafficCounts,
    resources: Vec<InspectBody>,
    /// How many more there are that are not shown.
    more: usize,
    /// Why nothing can be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'static str>,
}

impl LockWatch {
    /// The time between two looks.
    pub(super) const PACE: Duration = Duration::from_secs(1);

    pub(super) fn new(locks: LockManager, traffic: Traffic) -> Self {
        Self {
            locks,
            traffic,
            started: Instant::now(),
            seen: Arc::default(),
        }
    }

    /// The present state, as JSON. Visitors who come while somebody else looks get the same.
    ///
    /// # Cancel safety
    /// Safe.
    pub(super) async fn look(&self) -> Arc<str> {
        let mut seen = self.seen.lock().await;
        // Less than the pace, so that nobody gets the same state twice.
        let fresh = Self::PACE / 2;
        if let Some(last) = seen.as_ref().filter(|last| last.at.elapsed() < fresh) {
            return Arc::clone(&last.snapshot);
        }
        let snapshot = self.snapshot().await;
        let snapshot: Arc<str> = serde_json::json!(snapshot).to_string().into();
        *seen = Some(Seen {
            at: Instant::now(),
            snapshot: Arc::clone(&snapshot),
        });
        snapshot
    }

    async fn snapshot(&self) -> Snapshot {
        let (listed, problem) = match timeout(PATIENCE, self.locks.list()).await {
            Ok(Ok(listed)) => (listed, None),
            Ok(Err(error)) if error.kind() == ErrorKind::Unsupported => (
                Vec::new(),
                Some("this lock service cannot list what is held"),
            ),
            Ok(Err(_)) | Err(_) => (Vec::new(), Some("the lock service does not answer")),
        };
        let more = listed.len().saturating_sub(SHOWN_MAX);
        let shown = listed.into_iter().take(SHOWN_MAX);
        Snapshot {
            at_ms: millis(self.started.elapsed()),
            kind: self.locks.backend_kind(),
            counts: self.traffic.counts(),
            resources: shown
                .map(|listed| lease_view(listed.resource, listed.inspection))
                .collect(),
            more,
            problem,
        }
    }
}
