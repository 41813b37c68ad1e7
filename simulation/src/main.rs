//! Runs schedules of the shipped code. `scripts/prove` builds it, and calls it.

/// Prints a line. If its reader has gone away (`| head`), the line is lost, and the exit code is
/// what it would have been.
macro_rules! say {
    ($($text:tt)*) => {{
        let _unread = std::io::Write::write_fmt(
            &mut std::io::stdout(),
            format_args!("{}\n", format_args!($($text)*)),
        );
    }};
}

mod console;
mod interrupt;
mod showing;
mod workers;

use std::{fmt, path::PathBuf, process::ExitCode, sync::atomic::Ordering, time::Duration};

use clap::Parser;
use simulation::schedule::Promises;

/// Runs schedules of the shipped code. A seed chooses every message, pause, crash and order of
/// tasks of a schedule, and repeats it.
///
/// Exit codes: 0 if every promise was kept, 1 if one was broken, 2 if the arguments are wrong or a
/// file cannot be written, 3 if a situation has not come up often enough, 130 after Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "simulation")]
struct Options {
    /// How many schedules to run. Without it and without --minutes: 100 000
    #[arg(long, value_name = "N")]
    schedules: Option<u64>,
    /// The seed of the first schedule; each next one is greater by 1. Drawn by chance if missing
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// How long to run
    #[arg(long, value_name = "M")]
    minutes: Option<f64>,
    /// How many threads to run them on. Without it: one for each processor
    #[arg(long, value_name = "T")]
    threads: Option<usize>,
    /// Run one schedule, and show what happens in it
    #[arg(long, value_name = "SEED", conflicts_with_all = ["schedules", "seed", "minutes"])]
    replay: Option<u64>,
    /// Write a recording of that schedule, or of the smallest that breaks the same promise:
    /// `palisade-demo draw FILE` draws it
    #[arg(long, value_name = "FILE", requires = "replay")]
    recording: Option<PathBuf>,
    /// Promise that no lease runs out, which is wrong: for tests of this program
    #[arg(long, hide = true)]
    made_up_promise: bool,
    /// Look for a situation that there is not: for tests of this program
    #[arg(long, hide = true)]
    made_up_situation: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Print nothing but the result
    #[arg(long)]
    quiet: bool,
}

impl Options {
    const fn promises(&self) -> Promises {
        match self.made_up_promise {
            true => Promises::AndMadeUp,
            false => Promises::Ours,
        }
    }
}

/// Fewer schedules need not reach every situation.
const ENOUGH: u64 = 200_000;

/// How many schedules there are if nothing else is said.
const USUAL: u64 = 100_000;

fn main() -> ExitCode {
    let options = Options::parse();
    match options.replay {
        Some(seed) => showing::replay(seed, &options),
        None => run(&options),
    }
}

fn run(options: &Options) -> ExitCode {
    let is_over = match interrupt::listen() {
        Ok(is_over) => is_over,
        Err(error) => return failed(error),
    };
    let first = options.seed.unwrap_or_else(|| rand::random::<u32>().into());
    let most = match (options.schedules, options.minutes) {
        (Some(schedules), _) => schedules,
        (None, Some(_)) => u64::MAX,
        (None, None) => USUAL,
    };
    let job = workers::Job {
        first,
        most,
        longest: options
            .minutes
            .map(|minutes| Duration::from_secs_f64(60.0 * minutes.clamp(0.0, 1e6))),
        threads: options.threads.unwrap_or_else(workers::processors),
        promises: options.promises(),
        shows_progress: !options.quiet && !options.json,
        is_over,
    };
    if !options.json {
        say!("the first seed is {first}");
    }
    let (totals, time) = workers::work(&job);
    if let Some((seed, broken)) = &totals.broken {
        return showing::fail(*seed, broken, options);
    }
    let was_interrupted = job.is_over.load(Ordering::Relaxed);
    let mut missing = match was_interrupted || totals.schedules < ENOUGH {
        true => Vec::new(),
        false => totals.coverage.missing(totals.schedules),
    };
    if options.made_up_situation {
        missing.push(("made-up", 0, 1));
    }
    let rest = match was_interrupted {
        true => " until it was interrupted",
        false => "",
    };
    match options.json {
        true => console::json(first, &totals, time, &missing),
        false => console::summary(&totals, time, &missing, rest),
    }
    match (was_interrupted, missing.is_empty()) {
        (true, _) => ExitCode::from(interrupt::EXIT_CODE),
        (false, false) => ExitCode::from(3),
        (false, true) => ExitCode::SUCCESS,
    }
}

fn failed(error: impl fmt::Display) -> ExitCode {
    eprintln!("simulation: {error}");
    ExitCode::from(2)
}
