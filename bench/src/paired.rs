//! Two variants that take turns, and their medians.

use std::time::Instant;

use tokio::task::JoinSet;

use crate::figure::{BoxError, Measured, Unit};

/// The measurements of one variant, over all turns.
#[derive(Default)]
pub(crate) struct Samples(Vec<f64>);

/// The medians of two variants that took turns.
pub(crate) struct Medians {
    ours: f64,
    other: f64,
}

impl Samples {
    /// Runs the work and records its time, in microseconds.
    pub(crate) async fn time<T>(&mut self, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let result = work.await;
        self.push(started.elapsed().as_secs_f64() * 1e6);
        result
    }

    /// Times each of this number of runs of the work.
    pub(crate) async fn repeat<T, E: Into<BoxError>>(
        &mut self,
        times: u32,
        mut work: impl AsyncFnMut() -> Result<T, E>,
    ) -> Result<(), BoxError> {
        for _ in 0..times {
            self.time(work()).await.map_err(Into::into)?;
        }
        Ok(())
    }

    /// Applies the work to many inputs, and records the average time of each, in nanoseconds. The
    /// results are dropped afterwards, so that this is not measured.
    pub(crate) fn time_each<I, T>(&mut self, inputs: Vec<I>, work: impl FnMut(I) -> T) {
        let count = f64::from(u32::try_from(inputs.len()).unwrap_or(u32::MAX));
        let mut results = Vec::with_capacity(inputs.len());
        let started = Instant::now();
        results.extend(inputs.into_iter().map(work));
        self.push(started.elapsed().as_secs_f64() * 1e9 / count);
    }

    pub(crate) fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    pub(crate) fn median(mut self) -> f64 {
        self.0.sort_unstable_by(f64::total_cmp);
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

impl Medians {
    /// Our median divided by the other one, for quantities that should be small.
    pub(crate) fn ours_by_other(&self, unit: Unit) -> Measured {
        Measured {
            ratio: self.ours / self.other,
            ours: self.ours,
            other: self.other,
            unit,
        }
    }

    /// The other median divided by ours, which shows how many times better ours is.
    pub(crate) fn other_by_ours(&self, unit: Unit) -> Measured {
        Measured {
            ratio: self.other / self.ours,
            ..self.ours_by_other(unit)
        }
    }
}

/// Makes variants take turns, each going first as often as the others, and returns their medians.
pub(crate) async fn rotate<V: Copy + Send + Sync>(
    rounds: u32,
    variants: &[V],
    mut turn: impl AsyncFnMut(V, &mut Samples) -> Result<(), BoxError>,
) -> Result<Vec<f64>, BoxError> {
    let mut samples: Vec<Samples> = variants.iter().map(|_| Samples::default()).collect();
    for first in (0..variants.len()).cycle().take(rounds as usize) {
        for place in (first..variants.len()).chain(0..first) {
            turn(variants[place], &mut samples[place]).await?;
        }
    }
    Ok(samples.into_iter().map(Samples::median).collect())
}

/// Makes two variants take turns, each going first as often as the other.
pub(crate) async fn take_turns(
    rounds: u32,
    mut ours: impl AsyncFnMut(&mut Samples) -> Result<(), BoxError>,
    mut other: impl AsyncFnMut(&mut Samples) -> Result<(), BoxError>,
) -> Result<Medians, BoxError> {
    let medians = rotate(rounds, &[true, false], async |is_ours, samples| {
        if is_ours {
            ours(samples).await
        } else {
            other(samples).await
        }
    });
    let medians = medians.await?;
    Ok(Medians {
        ours: medians[0],
        other: medians[1],
    })
}

/// Repeats two works in turns, so many times in each turn, and times each of them.
pub(crate) async fn compare<A, B, E: Into<BoxError>, F: Into<BoxError>>(
    rounds: u32,
    times: u32,
    mut ours: impl AsyncFnMut() -> Result<A, E>,
    mut other: impl AsyncFnMut() -> Result<B, F>,
) -> Result<Medians, BoxError> {
    take_turns(
        rounds,
        async |samples| samples.repeat(times, &mut ours).await,
        async |samples| samples.repeat(times, &mut other).await,
    )
    .await
}

/// Runs this number of tasks concurrently. Each repeats its work this number of times. Returns how
/// often per second all tasks together did the work.
pub(crate) async fn per_second<F>(
    tasks: u32,
    times: u32,
    task: impl Fn(u32) -> F,
) -> Result<f64, BoxError>
where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let mut running = JoinSet::new();
    let started = Instant::now();
    for number in 0..tasks {
        running.spawn(task(number));
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(f64::from(tasks * times) / started.elapsed().as_secs_f64())
}
