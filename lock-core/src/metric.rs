//! The names of all metrics that this crate, `fenced-store` and `fenced-http` export.
//!
//! With the feature `metrics` a manager exports through the [`metrics`](https://docs.rs/metrics)
//! facade. Install the recorder *before* connecting: a manager looks for it once. Without the
//! feature the same counts are in [`LockManager::stats`](crate::LockManager::stats).
//!
//! | | name | kind | labels |
//! |---|---|---|---|
//! | [`GRANTS`] | `palisade_grants_total` | counter | `backend` |
//! | [`ACQUIRE_WAIT`] | `palisade_acquire_wait_seconds` | histogram | `backend` |
//! | [`ACQUIRE_TIMEOUTS`] | `palisade_acquire_timeouts_total` | counter | `backend` |
//! | [`ACQUIRE_FAILURES`] | `palisade_acquire_failures_total` | counter | `backend` |
//! | [`HANDOFFS`] | `palisade_handoffs_total` | counter | `backend` |
//! | [`QUEUE_LENGTH`] | `palisade_queue_length` | gauge | `backend` |
//! | [`HELD`] | `palisade_held` | gauge | `backend` |
//! | [`HOLD`] | `palisade_hold_seconds` | histogram | `backend` |
//! | [`RENEWALS`] | `palisade_renewals_total` | counter | `backend` |
//! | [`RENEWAL_FAILURES`] | `palisade_renewal_failures_total` | counter | `backend` |
//! | [`LOSSES`] | `palisade_losses_total` | counter | `backend`, `reason` |
//! | [`ABANDONED`] | `palisade_abandoned_total` | counter | `backend` |
//! | [`FLOOR_REPAIRS`] | `palisade_floor_repairs_total` | counter | `backend` |
//! | [`STORE_REFUSALS`] | `palisade_store_refusals_total` | counter | `reason` |
//! | [`TERMINATIONS`] | `palisade_terminations_total` | counter | |
//! | [`EDGE_REFUSALS`] | `palisade_edge_refusals_total` | counter | `status`, `problem` |
//!
//! No label names a resource: there may be millions. Use `LockManager::inspect` for a single one.

/// The name, kind and description of an exported metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// The name, in Prometheus style: it ends with the unit.
    pub name: &'static str,
    /// What kind of figure it is.
    pub kind: MetricKind,
    /// What it counts, in one sentence.
    pub help: &'static str,
}

/// Kinds of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// It only rises.
    Counter,
    /// It rises and falls.
    Gauge,
    /// A distribution of durations, in seconds.
    Histogram,
}

/// Acquisitions that got what they asked for.
pub const GRANTS: Metric = counter(
    "palisade_grants_total",
    "Acquisitions that got what they asked for.",
);

/// The time from the call to the grant.
pub const ACQUIRE_WAIT: Metric = histogram(
    "palisade_acquire_wait_seconds",
    "Time from the call of acquire to the grant.",
);

/// Acquisitions that found the resource held until their wait was over, or at their only look, or
/// that found the queue full.
pub const ACQUIRE_TIMEOUTS: Metric = counter(
    "palisade_acquire_timeouts_total",
    "Acquisitions that found the resource held until their wait was over.",
);

/// Acquisitions that ended with any other error.
pub const ACQUIRE_FAILURES: Metric = counter(
    "palisade_acquire_failures_total",
    "Acquisitions that ended with an error other than a timeout.",
);

/// Grants that were waited for.
pub const HANDOFFS: Metric = counter("palisade_handoffs_total", "Grants that were waited for.");

/// Acquisitions of this process that wait now. Add up all processes for the total.
///
/// An acquisition that was asked for a moment ago and not yet answered counts, too.
pub const QUEUE_LENGTH: Metric = gauge(
    "palisade_queue_length",
    "Acquisitions of this process that wait now.",
);

/// Leases that this process holds now.
pub const HELD: Metric = gauge("palisade_held", "Leases that this process holds now.");

/// The time from a grant to its release or loss.
pub const HOLD: Metric = histogram(
    "palisade_hold_seconds",
    "Time from a grant to its release or loss.",
);

/// Renewals that succeeded.
pub const RENEWALS: Metric = counter("palisade_renewals_total", "Renewals that succeeded.");

/// Renewals that failed. Each is repeated while the lease lives, so a few do no harm.
pub const RENEWAL_FAILURES: Metric = counter(
    "palisade_renewal_failures_total",
    "Renewals that failed; each is repeated while the lease lives.",
);

/// Leases that ended without being released by us.
///
/// The label `reason` is the [`LostReason`](crate::LostReason) in snake case: `expired`,
/// `not_holder`, `max_hold`, `shut_down`.
pub const LOSSES: Metric = counter(
    "palisade_losses_total",
    "Leases that ended without our release, by reason.",
);

/// Releases and cancellations that were given up: the lease ran out by itself.
pub const ABANDONED: Metric = counter(
    "palisade_abandoned_total",
    "Releases and cancellations that were given up: the lease ran out by itself.",
);

/// Acquisitions whose token had to be raised above the store's mark. Exported by `fenced-store`.
pub const FLOOR_REPAIRS: Metric = counter(
    "palisade_floor_repairs_total",
    "Acquisitions that had to be lifted above the store's mark.",
);

/// Claims, transactions and statements that a store has refused. Exported by `fenced-store`.
///
/// The label `reason` is `stale`, `duplicate` (another holder had claimed the same token),
/// `not_claimed`, `mark_lost`, `wrong_issuer` or `implausible`. A stale one now and then is the
/// fence at work.
pub const STORE_REFUSALS: Metric = counter(
    "palisade_store_refusals_total",
    "Claims, transactions and statements that a store has refused, by reason.",
);

/// Database sessions that were ended because they kept a claim waiting inside a transaction of an
/// older holder. Exported by `fenced-store`.
pub const TERMINATIONS: Metric = counter(
    "palisade_terminations_total",
    "Database sessions of older holders that were ended because they kept a claim waiting.",
);

/// Requests that a `FencingLayer` has not let through. Exported by `fenced-http`.
///
/// The label `problem` is the last part of the `type` of the problem document, such as
/// `fencing-token-required`, and `status` its status.
pub const EDGE_REFUSALS: Metric = counter(
    "palisade_edge_refusals_total",
    "Requests that a fencing layer has not let through, by status and problem.",
);

/// What a [`LockManager`](crate::LockManager) exports.
pub const OF_LOCKS: &[Metric] = &[
    GRANTS,
    ACQUIRE_WAIT,
    ACQUIRE_TIMEOUTS,
    ACQUIRE_FAILURES,
    HANDOFFS,
    QUEUE_LENGTH,
    HELD,
    HOLD,
    RENEWALS,
    RENEWAL_FAILURES,
    LOSSES,
    ABANDONED,
];

/// What `fenced-store` exports.
pub const OF_STORES: &[Metric] = &[FLOOR_REPAIRS, STORE_REFUSALS, TERMINATIONS];

/// What `fenced-http` exports.
pub const OF_EDGES: &[Metric] = &[EDGE_REFUSALS];

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric {
        name,
        kind: MetricKind::Counter,
        help,
    }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric {
        name,
        kind: MetricKind::Gauge,
        help,
    }
}

const fn histogram(name: &'static str, help: &'static str) -> Metric {
    Metric {
        name,
        kind: MetricKind::Histogram,
        help,
    }
}

#[cfg(feature = "metrics")]
impl Metric {
    /// Tells the recorder what the metric means.
    pub fn describe(&self) {
        use metrics::Unit::{Count, Seconds};
        match self.kind {
            MetricKind::Counter => metrics::describe_counter!(self.name, Count, self.help),
            MetricKind::Gauge => metrics::describe_gauge!(self.name, Count, self.help),
            MetricKind::Histogram => metrics::describe_histogram!(self.name, Seconds, self.help),
        }
    }
}
