//! The pause scenario: two processes, one lock, and a store with and without a fence.
//!
//! It stops and resumes real processes with signals, so it runs on Unix only.

mod api;
mod cli;
mod client;
mod draw;
mod events;
mod ledger;
mod live;
mod report;
mod scenario;
mod serve;
mod worker;

use std::process::ExitCode;

use palisade_cli::{
    print_document,
    program::{block_on, finish, quietly},
};

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    match Cli::read() {
        Command::Scenario(args) => finish(quietly(scenario::run(&args))),
        Command::Serve(args) => {
            let (log, format) = (&args.gateway.log, args.gateway.log_format);
            finish(block_on(log, format, serve::run(&args)))
        }
        Command::Openapi => finish(print_document(&api::document(true, true))),
        Command::Draw { recording, play } => finish(draw::run(&recording, play)),
        Command::Worker { job } => {
            let played = quietly(async { worker::run(&job).await });
            played.unwrap_or_else(|failure| finish(Err(failure)))
        }
    }
}
