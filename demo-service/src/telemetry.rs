//! What the crates count, for Prometheus.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::failure::Failure;

/// Upper bounds of the buckets of all times, in seconds: from a grant that nobody contends for to
/// the longest wait.
const BUCKETS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0,
];

/// Begins to count. Has to come before anything connects, for the crates look for it once.
///
/// # Errors
/// If something in this process counts already.
pub(crate) fn install() -> Result<PrometheusHandle, Failure> {
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| Failure::Machine {
            doing: "starting the metrics",
            source: std::io::Error::other(error),
        })
}
