//! Ratios of our code to floors and peers, measured in one run.
//!
//! Absolute times say little on a shared machine: a round trip takes five times as long when it
//! wakes another core. So every figure is a ratio of the medians of two variants that took turns,
//! and most are measured in both pinnings.
#![forbid(unsafe_code)]

mod consensus;
mod error;
mod figure;
mod gateway;
mod http;
mod paired;
mod peers;
mod pinning;
mod redis;
mod report;
mod sql;
mod store;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use self::{
    figure::{BoxError, Figure},
    report::{Format, Report},
};

#[derive(Parser)]
#[command(
    about,
    after_help = "Build with --release, or the ratios are of the compiler's laziness, and build \
                  the programs that it starts as well: cargo build --release -p bench -p e2e, and \
                  -p palisade-demo by itself. \
                  Nothing else should run on the machine meanwhile."
)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The Redis lock service, on a redis-server that is started for it.
    Redis(Options),
    /// The fenced store, on database servers that are started for it, and on SQLite.
    Store(Options),
    /// One database as lock service and store, on servers that are started for it, and on SQLite.
    Sql(Options),
    /// The layer around an HTTP handler; no server is needed.
    Http(Options),
    /// Lock services that ask a majority, on servers that are started for them.
    Consensus(Options),
    /// The program `palisade-demo serve`, as it is built, compared with a bare router.
    Gateway(Options),
    /// Other libraries beside ours, in the languages that they are written in; prints JSON.
    Peers(peers::Options),
    /// The page of the site and its pictures, from what `peers` has printed.
    Page(peers::PageOptions),
}

#[derive(Args)]
struct Options {
    /// One JSON object per figure and line, instead of a table.
    #[arg(long)]
    json: bool,
    /// How often the variants take turns. Contests, which are long, take an eighth of these turns.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Only these figures: names, separated by commas, or the option given several times.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Fail if a target is missed.
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    let done = match Cli::parse().what {
        What::Redis(options) => measure(redis::FIGURES, &options),
        What::Store(options) => measure(store::FIGURES, &options),
        What::Sql(options) => measure(sql::FIGURES, &options),
        What::Http(options) => measure(http::FIGURES, &options),
        What::Consensus(options) => measure(consensus::FIGURES, &options),
        What::Gateway(options) => measure(gateway::FIGURES, &options),
        What::Peers(options) => peers::measure(&options),
        What::Page(options) => peers::write_page(&options),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures and prints. False if a figure failed, or missed its target with `--check`.
fn measure(figures: &[Figure], options: &Options) -> Result<bool, BoxError> {
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: build with --release for figures that mean something");
    }
    let chosen = figure::choose(figures, &options.only)?;
    let format = if options.json {
        Format::Json
    } else {
        Format::Table
    };
    let mut report = Report::start(format);
    for (number, figure) in (1..).zip(&chosen) {
        let progress = format!("{number}/{}", chosen.len());
        match figure.measure(options.rounds, &progress) {
            Ok(result) => report.add(figure, &result)?,
            Err(error) => report.failed(figure, &*error),
        }
    }
    let fails = report.has_failed() || (options.check && report.has_missed());
    Ok(!fails)
}
