//! Runs schedules on several threads, each schedule on one.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use lock_core::backend::support::lock;
use simulation::{
    Totals, plan,
    schedule::{self, Promises, Report},
};

use crate::console;

pub(crate) struct Job {
    /// The first seed.
    pub(crate) first: u64,
    /// How many schedules.
    pub(crate) most: u64,
    /// How long they may take.
    pub(crate) longest: Option<Duration>,
    pub(crate) threads: usize,
    pub(crate) promises: Promises,
    pub(crate) shows_progress: bool,
    /// Becomes true when no more schedules may begin.
    pub(crate) is_over: Arc<AtomicBool>,
}

/// How many schedules a thread runs before it adds them up.
const PORTION: u64 = 64;

/// The number of processors.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs all schedules, or all up to the first that breaks a promise.
pub(crate) fn work(job: &Job) -> (Totals, Duration) {
    let started = Instant::now();
    let next = AtomicU64::new(0);
    let totals = Mutex::<Totals>::default();
    thread::scope(|scope| {
        for _ in 0..job.threads.max(1) {
            scope.spawn(|| {
                while let Some(portion) = portion(job, started, &next) {
                    lock(&totals).merge(portion);
                    if lock(&totals).broken.is_some() {
                        job.is_over.store(true, Ordering::Relaxed);
                    }
                    if job.shows_progress {
                        console::progress(&lock(&totals), started.elapsed());
                    }
                }
            });
        }
    });
    let totals = std::mem::take(&mut *lock(&totals));
    (totals, started.elapsed())
}

/// Runs a schedule.
fn report(job: &Job, seed: u64) -> Report {
    match job.promises {
        Promises::Ours => schedule::run_seed(seed),
        Promises::AndMadeUp => {
            schedule::run_under(&plan::drawn_plan(seed), false, Promises::AndMadeUp)
        }
    }
}

/// The next schedules; `None` if there are no more.
fn portion(job: &Job, started: Instant, next: &AtomicU64) -> Option<Totals> {
    let is_late = job
        .longest
        .is_some_and(|longest| started.elapsed() >= longest);
    if is_late || job.is_over.load(Ordering::Relaxed) {
        return None;
    }
    let begin = next.fetch_add(PORTION, Ordering::Relaxed);
    if begin >= job.most {
        return None;
    }
    let mut totals = Totals::default();
    for number in begin..std::cmp::min(begin + PORTION, job.most) {
        let seed = job.first.wrapping_add(number);
        totals.add(seed, report(job, seed));
        if totals.broken.is_some() {
            break;
        }
    }
    Some(totals)
}
