//! What this process says of itself: its log, and what the crates count, for Prometheus.

#[cfg(feature = "otel")]
mod collector;

use std::{
    convert::Infallible,
    io::{self, BufWriter, Write, stderr},
    thread,
    time::Duration,
};

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

#[cfg(feature = "otel")]
pub(crate) use self::collector::continue_trace;
use crate::{console::Console, failure::Failure};

/// What a line of the log looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object, with the fields of its request under `span`.
    Json,
}

/// How many lines may wait to be written, about 4 MB.
const LINES_MAX: usize = 16 * 1024;

/// The log, written by a thread of its own: a terminal or a pipe that nobody reads must not hold up
/// requests. Lines that find no room are lost, and counted.
///
/// Dropping it writes what is left, unless nobody reads it for a second, and says how many lines
/// were lost.
#[must_use = "what is left is written when this is dropped"]
pub(crate) struct Log {
    #[cfg(feature = "otel")]
    _collector: Option<collector::Collector>,
    writer: Option<WorkerGuard>,
    lost: ErrorCounter,
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(self.writer.take());
        let lost = self.lost.dropped_lines();
        if lost > 0 {
            Console::Stderr.line(format!(
                "palisade: {lost} lines of the log were lost, because stderr was not read in time"
            ));
        }
    }
}

/// How long lines gather before the thread of the log writes again.
const GATHER: Duration = Duration::from_millis(5);

/// What the thread of the log writes to. It flushes when it has written all lines that wait; then
/// it lets others gather, because to wake it for each line takes longer than to write it.
struct Gathered<W>(W);

impl<W: Write> Write for Gathered<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    #[expect(clippy::disallowed_methods, reason = "a thread that does nothing else")]
    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.0.flush();
        thread::sleep(GATHER);
        flushed
    }
}

/// Begins to log to stderr, and to send spans if the environment names a collector.
///
/// # Errors
/// [`Failure::Usage`] for a filter that is none.
pub(crate) fn log(filter: &str, format: LogFormat) -> Result<Log, Failure> {
    let filter = filter.parse::<Targets>().map_err(|error| {
        Failure::Usage(format!(
            "the filter of the log: {error}; try RUST_LOG=debug"
        ))
    })?;
    let (lines, writer) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES_MAX)
        .finish(Gathered(BufWriter::new(stderr())));
    let lost = lines.error_counter().clone();
    let colours = AutoStream::choice(&stderr());
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(colours != ColorChoice::Never)
        .with_writer(lines);
    let log = tracing_subscriber::registry().with(filter);
    #[cfg(feature = "otel")]
    let collector = collector::Collector::of_the_environment()?;
    #[cfg(feature = "otel")]
    let log = log.with(collector.as_ref().map(collector::Collector::layer));
    match format {
        LogFormat::Text => log.with(lines).init(),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_span_list(false);
            log.with(lines).init();
        }
    }
    Ok(Log {
        #[cfg(feature = "otel")]
        _collector: collector,
        writer: Some(writer),
        lost,
    })
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
    with_buckets()
        .and_then(PrometheusBuilder::install_recorder)
        .map_err(|error| Failure::Machine {
            doing: "starting the metrics",
            source: std::io::Error::other(error),
        })
}

fn with_buckets() -> Result<PrometheusBuilder, BuildError> {
    let times = Matcher::Suffix("_seconds".to_owned());
    PrometheusBuilder::new().set_buckets_for_metric(times, &BUCKETS)
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

#[cfg(test)]
mod tests {
    use allocation_counter::measure;
    use metrics::{Key, Level, Metadata, Recorder};
    use tokio::{runtime::Builder, time::timeout};

    use super::*;

    /// The greatest number of bytes while many durations are counted and nobody asks for them.
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
    fn durations_that_nobody_asks_for_are_not_kept() {
        let (kept, lost) = (peak(false), peak(true));
        assert!(kept > 20 * 20_000 * 8, "the control: {kept} bytes");
        assert!(lost < kept / 4, "{lost} of {kept} bytes");
    }
}
