//! Events that are worth an alert: they are counted as metrics and written to the log.

use lock_core::metric::{DUPLICATE_TOKENS, FLOOR_REPAIRS, Metric, TERMINATIONS};
use tracing::warn;

use crate::FenceError;

/// Makes the figures begin at zero. If a figure appeared only with its first event, no alert would
/// see the increase.
pub(crate) fn begin() {
    count(DUPLICATE_TOKENS, &[], 0);
    count(TERMINATIONS, &[], 0);
}

/// The same for figures that are counted per kind of lock service.
pub(crate) fn begin_repairs(backend: &'static str) {
    count(FLOOR_REPAIRS, &[("backend", backend)], 0);
}

/// The lock service was behind the store.
pub(crate) fn repair(backend: &'static str) {
    count(FLOOR_REPAIRS, &[("backend", backend)], 1);
}

/// A database session of an older holder was ended.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn termination() {
    count(TERMINATIONS, &[], 1);
}

/// Counts a refusal that should never happen.
pub(crate) fn refusal<T>(answer: Result<T, FenceError>) -> Result<T, FenceError> {
    if let Err(error @ FenceError::DuplicateToken { .. }) = &answer {
        warn!(%error, "a token has two holders");
        count(DUPLICATE_TOKENS, &[], 1);
    }
    answer
}

#[cfg(feature = "metrics")]
fn count(metric: Metric, labels: &[(&'static str, &'static str)], times: u64) {
    metric.describe();
    metrics::counter!(metric.name, labels).increment(times);
}

#[cfg(not(feature = "metrics"))]
const fn count(_: Metric, _: &[(&'static str, &'static str)], _: u64) {}
