//! The metrics of the crates, as an alarm would see them.

use lock_core::backend::metric::Metric;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

/// How often something was counted, with any labels.
///
/// # Panics
/// If the metric was never exported, not even as zero.
pub fn times(recorder: &DebuggingRecorder, metric: &Metric) -> u64 {
    let exported = recorder.snapshotter().snapshot().into_vec();
    let counted: Vec<u64> = exported
        .into_iter()
        .filter(|(key, ..)| key.key().name() == metric.name)
        .map(|(.., value)| match value {
            DebugValue::Counter(times) => times,
            other => panic!("{} is no counter: {other:?}", metric.name),
        })
        .collect();
    assert!(!counted.is_empty(), "{} was never counted", metric.name);
    counted.iter().sum()
}
