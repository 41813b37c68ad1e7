//! Runs schedules: `simulation --schedules N --seed S`.

use std::process::ExitCode;

use clap::Parser;
use simulation::{plan, schedule};

/// Runs schedules of the shipped code, each from a seed that repeats it.
#[derive(Debug, Parser)]
struct Options {
    /// How many schedules.
    #[arg(long, default_value_t = 1_000)]
    schedules: u64,
    /// The first seed. The others follow it.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[arg(long)]
    trace: bool,
}

fn main() -> ExitCode {
    use proptest::strategy::ValueTree;
    let options = Options::parse();
    let mut coverage = simulation::Coverage::default();
    let started = std::time::Instant::now();
    let mut broken = std::collections::BTreeMap::<String, (u64, u64, String)>::new();
    let (mut lost, mut refused) = (0, 0);
    for seed in options.seed..options.seed + options.schedules {
        let plan = plan::drawn(seed).current();
        if options.trace {
            println!("{plan:#?}");
        }
        let report = schedule::run(&plan, options.trace);
        coverage.add(&report.coverage);
        lost += u64::from(report.unfenced_lost);
        refused += report.refused;
        for line in report.lines {
            println!("{line}");
        }
        if let Some(it) = report.broken {
            let entry = broken
                .entry(it.promise.to_owned())
                .or_insert((0, seed, it.what));
            entry.0 += 1;
        }
    }
    println!(
        "{:?} a schedule, unfenced lost {lost}, refused {refused}",
        started.elapsed() / u32::try_from(options.schedules).unwrap()
    );
    for (name, count) in coverage.counts() {
        println!("{count:10} {name}");
    }
    for (promise, (count, seed, what)) in &broken {
        println!("broken: {promise} {count} times, seed {seed}: {what}");
    }
    if broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
