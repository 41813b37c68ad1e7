//! The pause scenario, a lock gateway and a fenced API in one binary.
//!
//! It stops and resumes real processes with signals, so it runs on Unix only.

#[cfg(not(unix))]
compile_error!("demo-service stops and resumes processes with Unix signals: build it on Unix");

mod address;
mod cli;
mod client;
mod console;
mod draw;
mod events;
mod failure;
mod gateway;
mod interrupt;
mod ledger;
mod live;
mod operator;
mod report;
mod scenario;
mod serve;
mod signing;
mod telemetry;
mod worker;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Builder;
use tracing_subscriber::EnvFilter;

use crate::{
    cli::{Cli, Command, Migrations},
    console::Console,
    failure::Failure,
};

fn main() -> ExitCode {
    match Cli::parse().chosen() {
        Command::Scenario(args) => finish(block_on("error", scenario::run(&args))),
        Command::Serve(args) => finish(block_on("info,sqlx=warn", serve::run(&args))),
        Command::List(args) => finish(block_on("error", operator::list(args))),
        Command::Inspect(args) => finish(block_on("error", operator::inspect(args))),
        Command::ForceRelease(args) => finish(block_on("error", operator::force_release(args))),
        Command::ResetHighWater(args) => {
            finish(block_on("error", operator::reset_high_water(args)))
        }
        Command::Seal(args) => finish(block_on("error", operator::seal(args))),
        Command::Draw { recording } => finish(draw::run(&recording)),
        Command::Migrations(Migrations::Print { dialect }) => {
            operator::print_migrations(dialect);
            ExitCode::SUCCESS
        }
        Command::SigningKey { id } => finish(signing::print_new_key(&id)),
        Command::Worker(args) => {
            let played = block_on("error", async { Ok(worker::run(args).await) });
            played.unwrap_or_else(|failure| finish(Err(failure)))
        }
    }
}

/// Runs to the end. What still blocks a thread then, such as a read of stdin, is not waited for.
fn block_on<T>(log: &str, main: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let filter = match std::env::var("RUST_LOG") {
        Ok(filter) => EnvFilter::try_new(filter)
            .map_err(|error| Failure::Usage(format!("RUST_LOG: {error}; try RUST_LOG=debug")))?,
        Err(_) => EnvFilter::new(log),
    };
    // anstream leaves the colours out where stderr is no terminal.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(anstream::stderr)
        .init();
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.map_err(Failure::machine("starting the runtime"))?;
    let result = runtime.block_on(main);
    runtime.shutdown_background();
    result
}

fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            Console::Stderr.line(format!("demo-service: {failure}"));
            failure.exit_code()
        }
    }
}
