//! Runs schedules of the shipped code. `scripts/prove` builds it, and calls it.

mod console;
mod workers;

use std::{process::ExitCode, time::Duration};

use clap::Parser;
use simulation::{Broken, plan, schedule, shrink};

/// Runs schedules of the shipped code. A seed chooses every message, pause, crash and order of
/// tasks of a schedule, and repeats it.
///
/// Exit codes: 0 if every promise was kept, 1 if one was broken, 2 if the arguments are wrong, 3 if
/// a situation has not come up often enough.
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
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Print nothing but the result
    #[arg(long)]
    quiet: bool,
}

/// How many schedules there are if nothing else is said.
const USUAL: u64 = 100_000;

/// Fewer schedules need not reach every situation.
const ENOUGH: u64 = 50_000;

fn main() -> ExitCode {
    let options = Options::parse();
    match options.replay {
        Some(seed) => replay(seed),
        None => run(&options),
    }
}

fn run(options: &Options) -> ExitCode {
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
        shows_progress: !options.quiet && !options.json,
    };
    if !options.json {
        println!("the first seed is {first}");
    }
    let (totals, time) = workers::work(&job);
    if let Some((seed, broken)) = &totals.broken {
        return fail(*seed, broken);
    }
    let missing = match totals.schedules < ENOUGH {
        true => Vec::new(),
        false => totals.coverage.missing(totals.schedules),
    };
    match options.json {
        true => console::json(first, &totals, time, &missing),
        false => console::summary(&totals, time, &missing),
    }
    match missing.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(3),
    }
}

/// Shows a schedule, and judges it.
fn replay(seed: u64) -> ExitCode {
    let plan = plan::drawn_plan(seed);
    let report = match schedule::is_over_sqlite(seed) {
        true => schedule::run_over_sqlite(&plan, true),
        false => schedule::run(&plan, true),
    };
    for line in &report.lines {
        println!("{line}");
    }
    println!("digest {:016x}", report.digest);
    match &report.broken {
        Some(broken) => fail(seed, broken),
        None => {
            println!("seed {seed} breaks no promise");
            ExitCode::SUCCESS
        }
    }
}

/// Shows a schedule that has broken a promise, as small as possible.
fn fail(seed: u64, broken: &Broken) -> ExitCode {
    println!("broken: {} seed {seed}: {}", broken.promise, broken.what);
    if schedule::is_over_sqlite(seed) {
        println!("it ran over SQLite: a replay repeats its draws, and not the order of its events");
        println!("{}", plan::drawn_plan(seed));
        return ExitCode::FAILURE;
    }
    let smaller = shrink::smaller(seed, broken);
    println!(
        "\nthe smallest such plan after {} runs:\n{}",
        smaller.runs, smaller.plan
    );
    let report = schedule::run(&smaller.plan, true);
    println!("\nwhat happens in it:\n");
    for line in &report.lines {
        println!("{line}");
    }
    println!(
        "\nbroken: {} seed {seed}: {}",
        broken.promise, smaller.broken.what
    );
    println!("the whole schedule: scripts/prove --replay {seed}");
    ExitCode::FAILURE
}
