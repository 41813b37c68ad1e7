//! Two variants that take turns, and the ratio of their medians.

use std::{
    fmt,
    time::{Duration, Instant},
};

use serde::Serialize;

/// One measured ratio.
#[derive(Serialize)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) pinning: &'static str,
    /// Ours divided by what it is compared with.
    pub(crate) ratio: f64,
    pub(crate) ours_us: f64,
    pub(crate) other_us: f64,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            pinning,
            ratio,
            ours_us,
            other_us,
        } = self;
        write!(
            f,
            "{name:<24} {pinning:<10} {ratio:>6.2}   {ours_us:>8.1} us / {other_us:>8.1} us"
        )
    }
}

/// Times of one variant, over all rounds.
#[derive(Default)]
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    /// Runs it and keeps the time.
    pub(crate) async fn time<T>(&mut self, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let result = work.await;
        self.0.push(started.elapsed());
        result
    }

    fn median_us(&mut self) -> f64 {
        self.0.sort_unstable();
        self.0
            .get(self.0.len() / 2)
            .map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    }
}

/// The ratio of the medians of `ours` to those of `other`.
pub(crate) fn figure(
    name: &'static str,
    pinning: &'static str,
    mut ours: Samples,
    mut other: Samples,
) -> Figure {
    let (ours_us, other_us) = (ours.median_us(), other.median_us());
    Figure {
        name,
        pinning,
        ratio: ours_us / other_us,
        ours_us,
        other_us,
    }
}
