//! Ratios against floors and peers, measured in one run.
//!
//! Absolute times say little on a shared machine: a round trip takes five times as long when it
//! wakes another core. So every figure is a ratio of medians of two things that took turns, and
//! both pinnings are run.
#![forbid(unsafe_code)]

mod paired;
mod pinning;
mod redis;

use std::error::Error;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    about,
    after_help = "Build with --release, or the ratios are of the compiler's laziness."
)]
struct Cli {
    #[command(subcommand)]
    what: What,
    /// One JSON object per figure and line, instead of a table.
    #[arg(long, global = true)]
    json: bool,
    /// How often the variants take turns.
    #[arg(long, global = true, default_value_t = 40)]
    rounds: usize,
}

#[derive(Subcommand)]
enum What {
    /// The Redis lock service, on a redis-server that is started for it.
    Redis,
}

fn main() -> Result<(), Box<dyn Error>> {
    let cli = Cli::parse();
    if cfg!(debug_assertions) {
        eprintln!("this is a debug build: build with --release for figures that mean something");
    }
    let figures = match cli.what {
        What::Redis => redis::run(cli.rounds)?,
    };
    for figure in &figures {
        if cli.json {
            println!("{}", serde_json::to_string(figure)?);
        } else {
            println!("{figure}");
        }
    }
    Ok(())
}
