//! What this process says of itself: its log, and what the crates count, for Prometheus.

use std::{convert::Infallible, time::Duration};

use clap::ValueEnum;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object, with the fields of its request under `span`.
    Json,
}

/// Begins to log to stderr.
///
/// # Errors
/// [`Failure::Usage`] for a filter that is none.
pub(crate) fn log(filter: &str, format: LogFormat) -> Result<(), Failure> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::Usage(format!(
            "the filter of the log: {error}; try RUST_LOG=debug"
        ))
    })?;
    // anstream leaves the colours out where stderr is no terminal.
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(anstream::stderr);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).with_span_list(false).init(),
    }
    Ok(())
}

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

/// How often what was counted is put into its buckets.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Puts what was counted into its buckets now and then. A recorder without it keeps every single
/// duration in memory until somebody asks for the metrics, and perhaps nobody ever does.
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
