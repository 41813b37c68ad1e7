//! Puts known faults into the shipped code, one at a time, and shows that each is caught.
//!
//! `simulation/mutants` has the lists. A copy of the workspace has all of them in one build, and
//! the environment variable `PALISADE_MUTANT` says which one is on. Each mutant runs in a
//! process of its own. The command fails if a mutant survives or breaks another promise than its
//! own, or if the code without a mutant breaks a promise.
#![forbid(unsafe_code)]

mod building;
mod copying;
mod list;
mod running;
mod switch;
mod table;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Parser;

use self::{
    building::{Program, Tests},
    list::{Catcher, List, Mutant},
    running::{Check, Verdict},
    table::Table,
};

type Failure = Box<dyn std::error::Error>;

/// A run that takes so much longer than the same run without a mutant has no end.
const SLOWER: u32 = 3;
const STARTING: Duration = Duration::from_secs(20);

/// Shows that each known fault of the shipped code is caught.
#[derive(Debug, Parser)]
struct Options {
    /// Only these mutants
    #[arg(long)]
    only: Vec<String>,
    /// Only the mutants that this check has to catch
    #[arg(long)]
    by: Option<Catcher>,
    /// How many schedules a simulation runs at most
    #[arg(long, default_value_t = 20_000)]
    schedules: u64,
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long one run may take, in seconds. With a mutant it is stopped sooner, because
    /// the run without a mutant shows how long it may take
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// A program that stands in for the simulator
    #[arg(long)]
    simulator: Option<PathBuf>,
}

/// The programs of the copy.
struct Built {
    simulator: Option<Program>,
    tests: Vec<Program>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Whether all were caught.
async fn run(options: &Options) -> Result<bool, Failure> {
    let list = List::read(root())?;
    let chosen = chosen(&list, options)?;
    let folder = root().join("target/mutants");
    let (copy, logs) = (folder.join("copy"), folder.join("logs"));
    fs::create_dir_all(&logs)?;
    let read = |path: &Path| Ok(fs::read_to_string(root().join(path))?);
    copying::copy(root(), &copy, &switch::switched(&list, read)?)?;
    let built = build(&copy, &chosen, options)?;
    let limit = Duration::from_secs(options.limit);

    let mut checks = BTreeMap::new();
    for mutant in &chosen {
        let check = check(mutant, &built, options)?;
        checks.insert(mutant.test.as_deref(), (check, limit));
    }
    for (number, (name, (check, limit))) in (0..).zip(&mut checks) {
        let log = logs.join(format!("control-{number}"));
        let control = check.run(None, &log, *limit).await?;
        if control.verdict != Verdict::Survived || control.is_reached {
            let name = name.unwrap_or("the simulation");
            let (verdict, log) = (control.verdict, log.display());
            return Err(format!("{name} without a mutant: {verdict:?}, see {log}").into());
        }
        *limit = std::cmp::min(*limit, SLOWER * control.took + STARTING);
    }
    let mut table = Table::new();
    for mutant in &chosen {
        let (check, limit) = &checks[&mutant.test.as_deref()];
        let log = logs.join(&mutant.name);
        let run = check.run(Some(&mutant.name), &log, *limit).await?;
        table.add(mutant, &run);
    }
    Ok(table.end())
}

fn chosen<'a>(list: &'a List, options: &Options) -> Result<Vec<&'a Mutant>, Failure> {
    let is_named =
        |mutant: &&Mutant| options.only.is_empty() || options.only.contains(&mutant.name);
    let is_by = |mutant: &&Mutant| options.by.is_none_or(|by| by == mutant.by);
    let chosen = list.mutants.iter().filter(is_named).filter(is_by);
    let chosen: Vec<_> = chosen.collect();
    let known = |name: &&String| !list.mutants.iter().any(|mutant| mutant.name == **name);
    match options.only.iter().find(known) {
        Some(name) => Err(format!("there is no mutant {name}").into()),
        None if chosen.is_empty() => Err("no mutant is chosen".into()),
        None => Ok(chosen),
    }
}

fn build(copy: &Path, chosen: &[&Mutant], options: &Options) -> Result<Built, Failure> {
    let is_simulated = chosen.iter().any(|it| it.by == Catcher::Simulation);
    let tests = chosen.iter().filter_map(|mutant| Tests::of(mutant));
    let tests = tests.collect::<Result<BTreeSet<_>, _>>()?;
    let simulator = match options.simulator {
        None if is_simulated => Some(building::simulator(copy)?),
        _ => None,
    };
    let tests = building::tests(copy, &tests)?;
    Ok(Built { simulator, tests })
}

fn check(mutant: &Mutant, built: &Built, options: &Options) -> Result<Check, Failure> {
    let Some(tests) = Tests::of(mutant) else {
        let number = |name: &str, number: u64| [format!("--{name}"), number.to_string()];
        let program = options.simulator.clone();
        let program = program.or_else(|| Some(built.simulator.as_ref()?.path.clone()));
        return Ok(Check {
            program: program.ok_or("there is no simulator")?,
            arguments: [
                number("schedules", options.schedules),
                number("seed", options.seed),
            ]
            .concat(),
            folder: root().to_owned(),
            seed: Some(options.seed),
        });
    };
    let tests = tests?;
    let Program { path, folder, .. } = tests.program(&built.tests)?;
    Ok(Check {
        program: path,
        arguments: tests.filters.split(' ').map(str::to_owned).collect(),
        folder,
        seed: None,
    })
}

/// The root of the workspace.
fn root() -> &'static Path {
    // This package lies one level below it.
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
