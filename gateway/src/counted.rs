//! The metrics of all crates, for Prometheus.

use std::{convert::Infallible, time::Duration};

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the buckets of all times, in seconds: from a grant without contention to
/// the longest wait.
const BUCKETS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0,
];

/// Installs the recorder for the metrics of all crates, for
/// [`Setup::metrics`](crate::Setup::metrics). Call it before anything connects, because the crates
/// look for the recorder once.
///
/// # Errors
/// If this process has a recorder already.
pub fn count() -> Result<PrometheusHandle, BuildError> {
    with_buckets().and_then(PrometheusBuilder::install_recorder)
}

fn with_buckets() -> Result<PrometheusBuilder, BuildError> {
    let times = Matcher::Suffix("_seconds".to_owned());
    PrometheusBuilder::new().set_buckets_for_metric(times, &BUCKETS)
}

/// How often new durations are put into their buckets.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Puts new durations into their buckets now and then. A recorder without this upkeep keeps every
/// single duration in memory until a client asks for the metrics, which may never happen.
///
/// # Cancel safety
/// Safe. It never completes.
pub(crate) async fn upkeep(metrics: Option<PrometheusHandle>) -> Infallible {
    let Some(metrics) = metrics else {
        return std::future::pending().await;
    };
    let mut ticks = tokio::time::interval(UPKEEP_EVERY);
    loop {
        ticks.tick().await;
        metrics.run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;
    use metrics::{Key, Level, Metadata, Recorder};
    use tokio::{runtime::Builder, time::timeout};

    use super::*;

    /// The greatest number of bytes while many durations are counted and no client asks for them.
    fn peak(has_upkeep: bool) -> u64 {
        let recorder = with_buckets().unwrap().build_recorder();
        let handle = has_upkeep.then(|| recorder.handle());
        let metadata = Metadata::new(module_path!(), Level::INFO, None);
        let times = recorder.register_histogram(&Key::from_name("wait_seconds"), &metadata);
        let mut runtime = Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let counting = async {
            let mut upkeep = std::pin::pin!(upkeep(handle));
            for _ in 0..20 {
                (0..20_000).for_each(|_| times.record(0.002));
                timeout(UPKEEP_EVERY, &mut upkeep).await.unwrap_err();
            }
        };
        measure(|| runtime.block_on(counting)).bytes_max
    }

    /// Catches: a gateway without a scraper, whose memory grows with each request.
    #[test]
    fn durations_that_are_never_read_are_not_kept() {
        let (kept, lost) = (peak(false), peak(true));
        assert!(kept > 20 * 20_000 * 8, "the control: {kept} bytes");
        assert!(lost < kept / 4, "{lost} of {kept} bytes");
    }
}
