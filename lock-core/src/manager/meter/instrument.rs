//! Counts, levels and times. Counts and levels are kept here. With the feature `metrics` all are
//! exported.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::backend::metric::Metric;

/// Label names and values.
pub(super) type Labels<'a> = &'a [(&'static str, &'static str)];

/// Counts events.
#[derive(Debug)]
pub(in crate::manager) struct Count {
    total: AtomicU64,
    #[cfg(feature = "metrics")]
    exported: metrics::Counter,
}

/// How many of something there are now.
#[derive(Debug)]
pub(in crate::manager) struct Level {
    now: AtomicU64,
    #[cfg(feature = "metrics")]
    exported: metrics::Gauge,
}

/// How long something takes. The times are only exported, not kept.
#[derive(Debug)]
pub(in crate::manager) struct Times {
    #[cfg(feature = "metrics")]
    exported: metrics::Histogram,
}

#[cfg_attr(
    not(feature = "metrics"),
    expect(unused_variables, reason = "for the export")
)]
impl Count {
    pub(super) fn new(metric: Metric, labels: Labels<'_>) -> Self {
        Self {
            total: AtomicU64::new(0),
            #[cfg(feature = "metrics")]
            exported: metrics::counter!(metric.name, labels),
        }
    }

    pub(in crate::manager) fn add(&self, times: u64) {
        self.total.fetch_add(times, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        self.exported.increment(times);
    }

    pub(super) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

#[cfg_attr(
    not(feature = "metrics"),
    expect(unused_variables, reason = "for the export")
)]
impl Level {
    pub(super) fn new(metric: Metric, labels: Labels<'_>) -> Self {
        Self {
            now: AtomicU64::new(0),
            #[cfg(feature = "metrics")]
            exported: metrics::gauge!(metric.name, labels),
        }
    }

    pub(in crate::manager) fn up(&self) {
        self.now.fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        self.exported.increment(1.0);
    }

    /// Lowers the level. Each call must follow an [`up`](Level::up), so the level never falls below
    /// zero.
    pub(in crate::manager) fn down(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        self.exported.decrement(1.0);
    }

    pub(super) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

#[cfg_attr(
    not(feature = "metrics"),
    expect(unused_variables, reason = "for the export")
)]
#[cfg_attr(
    not(feature = "metrics"),
    expect(clippy::unused_self, reason = "for the export")
)]
impl Times {
    pub(super) fn new(metric: Metric, labels: Labels<'_>) -> Self {
        Self {
            #[cfg(feature = "metrics")]
            exported: metrics::histogram!(metric.name, labels),
        }
    }

    /// Exports a time. Without an export, the clock is not read.
    pub(in crate::manager) fn record(&self, time: impl FnOnce() -> Duration) {
        #[cfg(feature = "metrics")]
        self.exported.record(time().as_secs_f64());
    }
}
