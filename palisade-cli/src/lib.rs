//! The program `palisade`: a lock gateway, and commands for operators.
//!
//! The demo in the same repository is a similar program. Both programs need the public items of
//! this library, which may change with every version.
#![forbid(unsafe_code)]

#[cfg(not(unix))]
compile_error!("palisade needs Unix signals: build it on Unix");

mod address;
mod cli;
mod console;
mod database;
mod descriptors;
pub mod duration;
mod failure;
mod interrupt;
mod open;
mod operator;
mod own_store;
mod private_file;
pub mod program;
#[cfg(target_os = "linux")]
mod run;
mod serve;
mod signing;
mod sqlite_file;
mod telemetry;

use std::process::ExitCode;

use serde_json::Value;

pub use self::{
    address::Address,
    cli::{Lock, NOTES, ServeArgs, read},
    console::Console,
    database::{AnyStore, told},
    failure::{Failure, with_sources},
    interrupt::{Interrupt, Interrupts},
    open::{gateway, listen},
    serve::Service,
    signing::ephemeral,
    telemetry::LogFormat,
};
use crate::{
    cli::{Cli, Command, Migrations},
    program::{block_on, finish, quietly, run_to_end},
};

/// Carries out the command of the command line and the environment.
#[must_use]
pub fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if let Some(code) = run::part() {
        return code;
    }
    match read::<Cli>(std::env::args_os()).command {
        Command::Serve(args) => finish(block_on(&args.log, args.log_format, serve::run(&args))),
        #[cfg(target_os = "linux")]
        Command::Run(args) => run::guard(&args),
        #[cfg(not(target_os = "linux"))]
        Command::Run(_) => finish(Err(Failure::Usage(
            "`run` needs Linux: other systems cannot promise that the command ends before its \
             lease does, because a process there cannot adopt the command of another one, nor \
             read a clock that goes on while the machine is suspended"
                .to_owned(),
        ))),
        Command::Doctor(args) => finish(run_to_end(operator::doctor(
            args,
            operator::Heard::listen(),
        ))),
        Command::List(args) => finish(quietly(operator::list(args))),
        Command::Inspect(args) => finish(quietly(operator::inspect(args))),
        Command::ForceRelease(args) => finish(quietly(operator::force_release(args))),
        Command::ResetHighWater(args) => finish(quietly(operator::reset_high_water(args))),
        Command::ForgetMarks(args) => finish(quietly(operator::forget_marks(args))),
        Command::Migrate(args) => finish(quietly(operator::migrate(args))),
        Command::Jobs(command) => finish(quietly(operator::jobs(command))),
        Command::Redlock(command) => finish(quietly(operator::redlock(command))),
        Command::Openapi => finish(print_document(&palisade_gateway::document(true))),
        Command::Migrations(Migrations::Print { dialect }) => {
            operator::print_migrations(dialect);
            ExitCode::SUCCESS
        }
        Command::Migrations(Migrations::Apply { store }) => {
            finish(quietly(operator::apply_migrations(store)))
        }
        Command::SigningKey { id, ed25519 } => finish(signing::print_new_key(&id, ed25519)),
    }
}

/// Prints the document of an API.
///
/// # Errors
/// [`Failure::Machine`] if it cannot be written as JSON.
pub fn print_document(document: &Value) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(document);
    let json = json.map_err(|error| Failure::machine("writing JSON")(error.into()))?;
    Console::Stdout.line(json);
    Ok(())
}
