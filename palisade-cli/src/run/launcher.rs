//! The process that becomes the command. It waits until guardian and supervisor both know it, and
//! until it has the terminal, because a command that neither of them knows could outlive its lease.

use std::{
    env, io,
    io::Write,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use rustix::stdio::dup2_stdin;

use super::{exit, peer, signals};
use crate::console::Console;

/// Becomes the command. The arguments of this process are the name and the arguments of the
/// command. If the execution fails, the supervisor gets the number of the system's error.
pub(super) fn become_the_command() -> ExitCode {
    match wait_and_execute() {
        Ok(never) => match never {},
        // The supervisor has no lease any more, or has ended. It has a message for the first case,
        // and the guardian for the second.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => ExitCode::from(exit::MACHINE),
        Err(error) => {
            Console::Stderr.line(format!("palisade: the command was not started: {error}"));
            ExitCode::from(exit::MACHINE)
        }
    }
}

fn wait_and_execute() -> io::Result<std::convert::Infallible> {
    // The supervisor has blocked these signals.
    signals::not_for_the_supervisor().thread_unblock()?;
    let mut supervisor = peer::inherited()?;
    let stdin = peer::receive_file(&supervisor)?;
    dup2_stdin(stdin)?;
    let mut command = env::args_os().skip(1);
    let program = command.next().ok_or(io::ErrorKind::InvalidInput)?;
    let error = Command::new(program).args(command).exec();
    supervisor.write_all(&error.raw_os_error().unwrap_or(0).to_le_bytes())?;
    // The supervisor prints the error.
    std::process::exit(i32::from(exit::not_executed(&error)));
}
