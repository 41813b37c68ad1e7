//! A process with a lock, for tests that stop or kill it.
//!
//! It prints a line of JSON for every step and takes each next step when it reads a line. At the
//! end of its input it exits.
#![forbid(unsafe_code)]

mod alone;
mod commits;
mod hold;
mod line;
mod section;
mod transaction;
mod works;

use std::{error::Error, io::Write};

use clap::{Args, Parser};
use lock_core::{LockManager, Ttl};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};

#[derive(Parser)]
enum Command {
    /// Run a command under a lease, without a second process.
    Alone(alone::Alone),
    /// Commit one fenced transaction after the other.
    Commits(commits::Commits),
    /// Acquire, then release at a line of input.
    Hold(Lock),
    /// Run a job once for each of its slots.
    Jobs(works::Works),
    /// Lead, and write while leading.
    Lead(works::Works),
    /// Wait in line with several acquisitions, and hold each for a while.
    Line(line::Line),
    /// Acquire, read, and write at a line of input.
    Section(section::Section),
    /// Stay inside a fenced transaction, and commit at a line of input.
    Transaction(transaction::Transaction),
}

#[derive(Args)]
struct Lock {
    /// URL of the lock service.
    #[arg(long)]
    lock: String,
    /// The resource to lock.
    #[arg(long)]
    resource: String,
    /// Length of the lease; the watchdog renews it.
    #[arg(long)]
    ttl_ms: u32,
}

impl Lock {
    async fn connect(&self) -> Result<LockManager, lock_core::Error> {
        palisade::connect(&self.lock).await
    }

    const fn ttl(&self) -> Ttl {
        Ttl::millis(self.ttl_ms)
    }
}

/// The conversation with the test.
struct Talk(Lines<BufReader<Stdin>>);

impl Talk {
    fn new() -> Self {
        Self(BufReader::new(tokio::io::stdin()).lines())
    }

    /// Whether to go on; false at the end of the input.
    async fn told_to_go_on(&mut self) -> std::io::Result<bool> {
        Ok(self.0.next_line().await?.is_some())
    }
}

/// Sends an event to the test.
fn say(event: &Value) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{event}")?;
    output.flush()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    match Command::parse() {
        Command::Alone(alone) => alone::run(&alone).await,
        Command::Commits(commits) => commits::run(&commits).await,
        Command::Hold(lock) => hold::run(&lock, Talk::new()).await,
        Command::Jobs(works) => works::run_jobs(&works, Talk::new()).await,
        Command::Lead(works) => works::lead(&works, Talk::new()).await,
        Command::Line(line) => line::run(line, Talk::new()).await,
        Command::Section(section) => section::run(&section, Talk::new()).await,
        Command::Transaction(inside) => transaction::run(&inside, Talk::new()).await,
    }
}
