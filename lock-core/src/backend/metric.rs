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
//! | [`OBSERVED`] | `palisade_observed_total` | counter | `result` |
//! | [`TERMINATIONS`] | `palisade_terminations_total` | counter | |
//! | [`FORGOTTEN`] | `palisade_forgotten_total` | counter | `row` |
//! | [`JOB_RUNS`] | `palisade_job_runs_total` | counter | `result` |
//! | [`JOBS_TAKEN_OVER`] | `palisade_jobs_taken_over_total` | counter | |
//! | [`JOBS_LATE`] | `palisade_jobs_late_total` | counter | |
//! | [`EDGE_REFUSALS`] | `palisade_edge_refusals_total` | counter | `status`, `problem` |
//!
//! No label names a resource: there may be millions. Use `LockManager::inspect` for a single one.

/// The name, kind and description of an exported metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// The name, in Prometheus style: it ends with the unit.
    pub name: &'static str,
    /// The kind of figure.
    pub kind: MetricKind,
    /// Its meaning, in one sentence.
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

/// The table of metrics: the kind, the name and the meaning of each. The meaning becomes the
/// rustdoc.
macro_rules! table {
    ($($(#[$of:meta])* [$list:ident] $($name:ident = $kind:ident($exported:literal, $help:literal)
        $(#[$more:meta])*;)+)+) => {
        $(
            $(
                #[doc = $help]
                $(#[$more])*
                pub const $name: Metric = Metric {
                    name: $exported,
                    kind: MetricKind::$kind,
                    help: $help,
                };
            )+
            $(#[$of])*
            pub const $list: &[Metric] = &[$($name),+];
        )+
    };
}

table! {
    /// The metrics of a [`LockManager`](crate::LockManager).
    [OF_LOCKS]
    GRANTS = Counter("palisade_grants_total", "Acquisitions that got what they asked for.");
    ACQUIRE_WAIT = Histogram(
        "palisade_acquire_wait_seconds",
        "Time from the call of acquire to the grant."
    );
    ACQUIRE_TIMEOUTS = Counter(
        "palisade_acquire_timeouts_total",
        "Acquisitions that found the resource held until their wait was over."
    )
    /// Includes acquisitions that found it held at their only look, and those that found the queue
    /// full.
    ;
    ACQUIRE_FAILURES = Counter(
        "palisade_acquire_failures_total",
        "Acquisitions that ended with an error other than a timeout."
    );
    HANDOFFS = Counter("palisade_handoffs_total", "Grants that were waited for.");
    QUEUE_LENGTH = Gauge("palisade_queue_length", "Acquisitions of this process that wait now.")
    /// Add up all processes for the total.
    ///
    /// An acquisition whose first request has no answer yet counts, too.
    ;
    HELD = Gauge("palisade_held", "Leases that this process holds now.");
    HOLD = Histogram("palisade_hold_seconds", "Time from a grant to its release or loss.");
    RENEWALS = Counter("palisade_renewals_total", "Renewals that succeeded.");
    RENEWAL_FAILURES = Counter(
        "palisade_renewal_failures_total",
        "Renewals that failed; each is repeated while the lease lives."
    );
    LOSSES = Counter(
        "palisade_losses_total",
        "Leases that ended without our release, by reason."
    )
    ///
    /// The label `reason` is the [`LostReason`](crate::LostReason) in snake case: `expired`,
    /// `not_holder`, `max_hold`, `shut_down`.
    ;
    ABANDONED = Counter(
        "palisade_abandoned_total",
        "Releases and cancellations that were given up: the lease ran out by itself."
    );

    /// The metrics of `fenced-store`.
    [OF_STORES]
    FLOOR_REPAIRS = Counter(
        "palisade_floor_repairs_total",
        "Acquisitions that had to be lifted above the store's mark."
    );
    STORE_REFUSALS = Counter(
        "palisade_store_refusals_total",
        "Claims, transactions and statements that a store has refused, by reason."
    )
    ///
    /// The label `reason` is `stale`, `duplicate` (another holder had claimed the same token),
    /// `not_claimed`, `mark_lost`, `wrong_issuer` or `implausible`. A few `stale` refusals are
    /// normal: the fence does its work.
    ;
    OBSERVED = Counter(
        "palisade_observed_total",
        "Claims and writes of stores that only observe, by what they would have answered."
    )
    ///
    /// The label `result` is `accepted`, `unknown` (the database could not be asked), or a `reason`
    /// of [`STORE_REFUSALS`].
    ;
    TERMINATIONS = Counter(
        "palisade_terminations_total",
        "Database sessions of older holders that were ended because they kept a claim waiting."
    );

    FORGOTTEN = Counter(
        "palisade_forgotten_total",
        "Idle rows of resources that were forgotten, in favour of a floor."
    )
    ///
    /// The label `row` is `mark`, or `lease` where the lock service is in the same database.
    ;
    JOB_RUNS = Counter(
        "palisade_job_runs_total",
        "Slots of jobs that were asked to run, by result."
    )
    ///
    /// The label `result` is `ran`, `done` (before), `held`, `backing_off`, `failed` or `lost` (the
    /// runner was overtaken).
    ;
    JOBS_TAKEN_OVER = Counter(
        "palisade_jobs_taken_over_total",
        "Slots of jobs that were taken over from the last step of an earlier run."
    );
    JOBS_LATE = Counter(
        "palisade_jobs_late_total",
        "Slots of schedules that ran when a newer one was due already."
    );

    /// The metrics of `fenced-http`.
    [OF_EDGES]
    EDGE_REFUSALS = Counter(
        "palisade_edge_refusals_total",
        "Requests that a fencing layer has not let through, by status and problem."
    )
    ///
    /// The label `problem` is the last part of the `type` of the problem document, such as
    /// `fencing-token-required`, and `status` its status.
    ;
}

#[cfg(feature = "metrics")]
impl Metric {
    /// Gives the recorder the meaning of the metric.
    pub fn describe(&self) {
        use metrics::Unit::{Count, Seconds};
        match self.kind {
            MetricKind::Counter => metrics::describe_counter!(self.name, Count, self.help),
            MetricKind::Gauge => metrics::describe_gauge!(self.name, Count, self.help),
            MetricKind::Histogram => metrics::describe_histogram!(self.name, Seconds, self.help),
        }
    }
}
