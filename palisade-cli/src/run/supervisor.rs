//! The process that holds the lease, and whose child the command is.

use std::{fs::File, io, os::fd::OwnedFd, os::unix::net::UnixStream, pin::pin, process::ExitCode};

use futures_util::future::{Either, select};
use rustix::{
    process::{Pid, getppid},
    stdio::dup2_stdin,
};
use serde_json::json;
use tokio::sync::oneshot;

use super::{
    command,
    countdown::Margins,
    exit,
    fate::{Exit, Fate},
    lease::{self, Finish},
    peer,
    report::Report,
    signals,
    to_guardian::Guardian,
};
use crate::{
    cli::{Cli, Command, RunArgs},
    console::Console,
    failure::Failure,
    program::quietly,
};

/// Runs the command whose guardian has started this process, with the guardian's arguments.
pub(super) fn supervise() -> ExitCode {
    let Command::Run(args) = crate::cli::read::<Cli>(std::env::args_os()).command else {
        return ExitCode::from(exit::MACHINE);
    };
    let code = match begin() {
        Err(error) => failed(&args, &Failure::machine("starting the supervisor")(error)),
        Ok(given) => match quietly(run(&args, given)) {
            Ok(code) => code,
            Err(failure) => failed(&args, &failure),
        },
    };
    ExitCode::from(code)
}

/// The things that the guardian passes to this process.
struct Given {
    guardian: Option<Pid>,
    socket: UnixStream,
    /// The input of the command.
    stdin: OwnedFd,
}

fn begin() -> io::Result<Given> {
    let guardian = getppid();
    // This process also writes to the terminal from the background.
    signals::not_for_the_supervisor().thread_block()?;
    let socket = peer::inherited()?;
    let stdin = peer::receive_file(&socket)?;
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(Given {
        guardian,
        socket,
        stdin,
    })
}

async fn run(args: &RunArgs, given: Given) -> Result<u8, Failure> {
    let report = Report::of(args);
    let grace = args.grace().map_err(Failure::Usage)?;
    let margins = Margins::new(args.ttl.get(), grace);
    let guardian = Guardian::new(given.socket, given.guardian);
    let guardian = guardian.map_err(Failure::machine("talking to the guardian"))?;
    let (hold, held) = oneshot::channel();
    let (stop, stopped) = oneshot::channel();
    let lease = pin!(lease::with_lease(args, report, hold, stopped));
    let command = pin!(command::run(
        held,
        stop,
        guardian,
        &args.command,
        margins,
        given.stdin
    ));
    let (finish, fate) = match select(lease, command).await {
        // If the command was begun, it is ended now, before this process ends, whatever has failed.
        Either::Left((finish, command)) => {
            let fate = command.await;
            (finish?, fate)
        }
        Either::Right((fate, lease)) => (lease.await?, fate),
    };
    let fate = fate.map_err(Failure::machine("starting or watching the command"))?;
    Ok(said(args, report, &finish, fate))
}

/// Reports the result, and returns the exit code.
fn said(args: &RunArgs, report: Report, finish: &Finish, fate: Fate) -> u8 {
    let resource = &args.resource;
    match (finish, fate) {
        (Finish::Lost(why), fate) => {
            let text = lost(fate, why);
            report.failure("lost", json!({ "why": why }), &text);
            exit::LOST
        }
        (_, Fate::Lost(cause) | Fate::NotStarted(cause)) => {
            let why = cause.text();
            report.failure("lost", json!({ "why": why }), &lost(fate, why));
            exit::LOST
        }
        (_, Fate::Ended(Exit::Code(code))) => {
            report.step(
                "exited",
                json!({ "code": code }),
                &format!("exit code {code}"),
            );
            u8::try_from(code).unwrap_or(u8::MAX)
        }
        (_, Fate::Ended(Exit::Signal(signal))) => {
            let text = format!("the command was ended by signal {signal}");
            report.step("exited", json!({ "signal": signal }), &text);
            exit::by_signal(signal)
        }
        (_, Fate::NotExecuted(error)) => {
            let error = io::Error::from_raw_os_error(error);
            let program = args
                .command
                .first()
                .map(|program| program.to_string_lossy());
            let text = format!("{}: {error}", program.unwrap_or_default());
            report.failure("not_executed", json!({ "why": text }), &text);
            exit::not_executed(&error)
        }
        (_, Fate::Stopped(signal)) => signal.map_or(exit::LOST, exit::by_signal),
        (Finish::Held { retry_after }, _) => {
            let left = retry_after.map(|left| format!(", for {left:.1?} unless it is renewed"));
            let text = format!(
                "another holder has \"{resource}\"{}",
                left.unwrap_or_default()
            );
            report.notice("held", json!({ "resource": resource.as_str() }), &text);
            exit::HELD
        }
        (Finish::Done(slot), _) => {
            let text = format!("{slot} of \"{resource}\" is done already");
            report.notice("done", json!({ "slot": slot.as_str() }), &text);
            0
        }
        (Finish::NothingDue, _) => {
            report.notice("nothing_due", json!({}), "no time of --every has come yet");
            0
        }
        (Finish::BackingOff { slot, retry_in }, _) => {
            let event = json!({
                "slot": slot.as_str(), "retry_in_ms": palisade_gateway::wire::millis(*retry_in),
            });
            let text = format!("{slot} of \"{resource}\" has failed, and is due in {retry_in:.1?}");
            report.notice("backing_off", event, &text);
            exit::HELD
        }
        (Finish::Ran(_) | Finish::Stopped, Fate::NoLease) => exit::MACHINE,
    }
}

/// A sentence about the end of the command, with the reason why its lease was lost.
fn lost(fate: Fate, why: &str) -> String {
    match fate {
        Fate::Ended(Exit::Code(code)) => {
            format!("the command has ended with exit code {code}, but {why}")
        }
        Fate::Ended(Exit::Signal(_)) | Fate::Lost(_) => format!("the command was ended: {why}"),
        _ => format!("the command was not started: {why}"),
    }
}

fn failed(args: &RunArgs, failure: &Failure) -> u8 {
    match args.json {
        true => Report::of(args).failure("failed", json!({ "error": failure.to_string() }), ""),
        false => Console::Stderr.line(format!("palisade: {failure}")),
    }
    exit::of(failure)
}
