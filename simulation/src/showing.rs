//! One schedule, shown to a person or a program.

use std::{fs, io, process::ExitCode};

use serde_json::json;
use simulation::{
    Broken,
    plan::{self, Plan},
    recording,
    schedule::{self, Promises, Report},
    shrink,
};

use crate::{Options, failed};

/// Shows a schedule, and judges it.
pub(crate) fn replay(seed: u64, options: &Options) -> ExitCode {
    let mut plan = plan::drawn_plan(seed);
    let report = if is_over_sqlite(seed, options) {
        plan = plan.shortened();
        schedule::run_over_sqlite(&plan, true)
    } else {
        schedule::run_under(&plan, true, options.promises())
    };
    let digest = format!("{:016x}", report.digest);
    if !options.quiet && !options.json {
        for line in &report.lines {
            say!("{line}");
        }
        say!("digest {digest}");
    }
    if let Some(broken) = &report.broken {
        return fail(seed, broken, options);
    }
    match options.json {
        true => say!("{}", json!({ "seed": seed, "digest": digest })),
        false => say!("seed {seed} breaks no promise"),
    }
    match record(options, &plan, &report) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error),
    }
}

/// Shows a schedule that has broken a promise, as small as possible.
pub(crate) fn fail(seed: u64, broken: &Broken, options: &Options) -> ExitCode {
    if !options.json {
        say!("broken: {} seed {seed}: {}", broken.promise, broken.what);
    }
    if is_over_sqlite(seed, options) {
        return over_sqlite(seed, broken, options);
    }
    let smaller = shrink::smaller(seed, broken, options.promises());
    let report = schedule::run_under(&smaller.plan, true, options.promises());
    match options.json {
        true => json_of(seed, &smaller.broken, &smaller.plan),
        false => text_of(seed, &smaller, &report),
    }
    match record(options, &smaller.plan, &report) {
        Ok(()) => ExitCode::FAILURE,
        Err(error) => failed(error),
    }
}

fn is_over_sqlite(seed: u64, options: &Options) -> bool {
    options.promises() == Promises::Ours && schedule::is_over_sqlite(seed)
}

/// Shows a schedule over SQLite. It does not become smaller, because no two of its runs are alike.
fn over_sqlite(seed: u64, broken: &Broken, options: &Options) -> ExitCode {
    let plan = plan::drawn_plan(seed).shortened();
    if options.json {
        json_of(seed, broken, &plan);
    } else {
        say!("it ran over SQLite: a replay repeats its draws, and not the order of its events");
        say!("{plan}");
    }
    ExitCode::FAILURE
}

fn text_of(seed: u64, smaller: &shrink::Smaller, report: &Report) {
    say!(
        "\nthe smallest such plan after {} runs:\n{}",
        smaller.runs,
        smaller.plan
    );
    say!("\nwhat happens in it:\n");
    for line in &report.lines {
        say!("{line}");
    }
    let Broken { promise, what, .. } = &smaller.broken;
    say!("\nbroken: {promise} seed {seed}: {what}");
    say!("the whole schedule: scripts/prove --replay {seed}");
}

fn json_of(seed: u64, broken: &Broken, plan: &Plan) {
    let result = json!({
        "seed": seed,
        "broken": broken.promise,
        "what": broken.what,
        "plan": plan.to_string(),
    });
    say!("{result}");
}

/// Writes the recording, if the options ask for it.
fn record(options: &Options, plan: &Plan, report: &Report) -> io::Result<()> {
    let Some(file) = &options.recording else {
        return Ok(());
    };
    let recording = serde_json::to_string(&recording::of(plan, report))?;
    let named = |error| io::Error::other(format!("{}: {error}", file.display()));
    fs::write(file, recording).map_err(named)
}
