//! Events that are worth an alert. They are counted as metrics and written to the log.

use lock_core::backend::metric::{
    FLOOR_REPAIRS, FORGOTTEN, JOB_RUNS, JOBS_LATE, JOBS_TAKEN_OVER, Metric, OBSERVED,
    STORE_REFUSALS, TERMINATIONS,
};
use tracing::warn;

use crate::{FenceError, Observed, forget::Rows};

/// Makes the metrics begin at zero. If a metric appeared only with its first event, no alert would
/// see the increase.
pub(crate) fn begin() {
    for reason in REASONS {
        count(STORE_REFUSALS, &[("reason", reason)], 0);
    }
    count(TERMINATIONS, &[], 0);
    forgotten(Rows::Marks, 0);
    forgotten(Rows::Leases, 0);
    for result in REASONS.into_iter().chain([ACCEPTED, UNKNOWN]) {
        count(OBSERVED, &[("result", result)], 0);
    }
    for result in ["ran", "done", "held", "backing_off", "failed", "lost"] {
        count(JOB_RUNS, &[("result", result)], 0);
    }
    count(JOBS_TAKEN_OVER, &[], 0);
    count(JOBS_LATE, &[], 0);
}

/// Makes the metrics of this kind of lock service begin at zero.
pub(crate) fn begin_repairs(backend: &'static str) {
    count(FLOOR_REPAIRS, &[("backend", backend)], 0);
}

/// Counts that the lock service was behind the store.
pub(crate) fn repair(backend: &'static str) {
    count(FLOOR_REPAIRS, &[("backend", backend)], 1);
}

/// Counts that a database session of an older holder was ended.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn termination() {
    count(TERMINATIONS, &[], 1);
}

/// Counts idle rows that were forgotten.
pub(crate) fn forgotten(rows: Rows, times: u64) {
    let row = match rows {
        Rows::Marks => "mark",
        Rows::Leases => "lease",
    };
    count(FORGOTTEN, &[("row", row)], times);
}

/// Counts a refusal. The refusal of a token with two holders should never happen, so it is also
/// logged.
pub(crate) fn refusal<T>(answer: Result<T, FenceError>) -> Result<T, FenceError> {
    if let Err(error) = &answer
        && let Some(reason) = reason(error)
    {
        count(STORE_REFUSALS, &[("reason", reason)], 1);
        if matches!(error, FenceError::DuplicateToken { .. }) {
            warn!(%error, "a token has two holders");
        }
    }
    answer
}

/// Whether an error is a refusal, which counts.
pub(crate) const fn is_refusal(error: &FenceError) -> bool {
    reason(error).is_some()
}

/// Counts the answer that a store would have given.
pub(crate) fn observed(observed: &Observed) {
    let result = match observed {
        Observed::Accepted => ACCEPTED,
        Observed::Refused(error) => reason(error).unwrap_or(UNKNOWN),
        Observed::Unknown(_) => UNKNOWN,
    };
    count(OBSERVED, &[("result", result)], 1);
}

/// Counts a job that was asked to run a slot, by its result.
pub fn job_run(result: &'static str) {
    count(JOB_RUNS, &[("result", result)], 1);
}

/// Counts a slot that was taken over from its last committed step.
pub fn job_taken_over() {
    count(JOBS_TAKEN_OVER, &[], 1);
}

/// Counts a slot of a schedule that ran after a newer one was due.
pub fn job_late() {
    count(JOBS_LATE, &[], 1);
}

const ACCEPTED: &str = "accepted";

const UNKNOWN: &str = "unknown";

/// The reasons of a refusal.
const REASONS: [&str; 6] = [
    "stale",
    "duplicate",
    "not_claimed",
    "mark_lost",
    "wrong_issuer",
    "implausible",
];

const fn reason(error: &FenceError) -> Option<&'static str> {
    let at = match error {
        FenceError::Stale { .. } => 0,
        FenceError::DuplicateToken { .. } => 1,
        FenceError::NotClaimed { .. } => 2,
        FenceError::MarkLost { .. } => 3,
        FenceError::WrongIssuer { .. } => 4,
        FenceError::Implausible { .. } => 5,
        _ => return None,
    };
    Some(REASONS[at])
}

#[cfg(feature = "metrics")]
fn count(metric: Metric, labels: &[(&'static str, &'static str)], times: u64) {
    metric.describe();
    metrics::counter!(metric.name, labels).increment(times);
}

#[cfg(not(feature = "metrics"))]
const fn count(_: Metric, _: &[(&'static str, &'static str)], _: u64) {}
