//! The pause scenario, a lock gateway and a fenced API in one binary.
//!
//! It stops and resumes real processes with signals, so it runs on Unix only.

#[cfg(not(unix))]
compile_error!("palisade stops and resumes processes with Unix signals: build it on Unix");

mod address;
mod cli;
mod client;
mod console;
mod descriptors;
mod draw;
mod duration;
mod events;
mod failure;
mod gateway;
mod interrupt;
mod ledger;
mod live;
mod operator;
mod own_store;
mod private_file;
mod report;
mod scenario;
mod serve;
mod signing;
mod telemetry;
mod worker;

use std::process::ExitCode;

use tokio::runtime::Builder;

use crate::{
    cli::{Cli, Command, Migrations},
    console::Console,
    failure::Failure,
    telemetry::LogFormat,
};

fn main() -> ExitCode {
    run(Cli::read())
}

fn run(command: Command) -> ExitCode {
    match command {
        Command::Scenario(args) => finish(quietly(scenario::run(&args))),
        Command::Serve(args) => finish(block_on(&args.log, args.log_format, serve::run(&args))),
        Command::Doctor(args) => finish(run_to_end(operator::doctor(
            args,
            operator::Heard::listen(),
        ))),
        Command::List(args) => finish(quietly(operator::list(args))),
        Command::Inspect(args) => finish(quietly(operator::inspect(args))),
        Command::ForceRelease(args) => finish(quietly(operator::force_release(args))),
        Command::ResetHighWater(args) => finish(quietly(operator::reset_high_water(args))),
        Command::Migrate(args) => finish(quietly(operator::migrate(args))),
        Command::Jobs(command) => finish(quietly(operator::jobs(command))),
        Command::Redlock(command) => finish(quietly(operator::redlock(command))),
        Command::Openapi => finish(gateway::print_document()),
        Command::Draw { recording, play } => finish(draw::run(&recording, play)),
        Command::Migrations(Migrations::Print { dialect }) => {
            operator::print_migrations(dialect);
            ExitCode::SUCCESS
        }
        Command::Migrations(Migrations::Apply { store }) => {
            finish(quietly(operator::apply_migrations(store)))
        }
        Command::SigningKey { id, ed25519 } => finish(signing::print_new_key(&id, ed25519)),
        Command::Worker { job } => {
            let played = quietly(async { worker::run(&job).await });
            played.unwrap_or_else(|failure| finish(Err(failure)))
        }
    }
}

/// Runs to the end, logging only errors unless the environment asks for more.
fn quietly<T>(main: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let filter = std::env::var("RUST_LOG")
        .ok()
        .filter(|filter| !filter.is_empty());
    let filter = filter.unwrap_or_else(|| "error".to_owned());
    block_on(&filter, LogFormat::Text, main)
}

/// Runs to the end, with a log.
fn block_on<T>(
    filter: &str,
    format: LogFormat,
    main: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    // Until everything else is over.
    let _log = telemetry::log(filter, format)?;
    run_to_end(main)
}

/// Runs to the end. Does not wait for threads that are still blocked, such as in a read of stdin.
fn run_to_end<T>(main: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
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
            Console::Stderr.line(format!("palisade: {failure}"));
            failure.exit_code()
        }
    }
}
