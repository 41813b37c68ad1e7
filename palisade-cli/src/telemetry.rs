//! The log of this process, and its spans.

#[cfg(feature = "otel")]
mod collector;

use std::{
    io::{self, BufWriter, Write, stderr},
    thread,
    time::Duration,
};

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{console::Console, failure::Failure};

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object, with the fields of its request under `span`.
    Json,
}

/// How many lines may wait to be written, about 4 MB.
const LINES_MAX: usize = 16 * 1024;

/// The log. A thread of its own writes it, because a terminal or a pipe without a reader must not
/// delay requests. Lines that find no room are lost and counted.
///
/// A drop writes the remaining lines, unless they find no reader for a second, and prints the
/// number of lost lines.
#[must_use = "the remaining lines are written when this is dropped"]
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

/// The writer that the thread of the log uses. It flushes when it has written all lines that wait.
/// Then it waits while further lines gather, because a wake-up for each line takes longer than the
/// write.
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
/// [`Failure::Usage`] if the filter is not valid.
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
