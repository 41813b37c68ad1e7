//! The exit codes of `run` itself, if it does not pass on the code of the command. `--help` has
//! them, too.

use std::io;

use crate::failure::Failure;

/// The lock service or the store cannot be used: `EX_UNAVAILABLE` of sysexits.h.
pub(super) const UNAVAILABLE: u8 = 69;
/// Try again later: `EX_TEMPFAIL` of sysexits.h.
pub(super) const HELD: u8 = 75;
/// The lease was lost. timeout(1) has the same code for a command whose time was over.
pub(super) const LOST: u8 = 124;
/// This program itself has failed. env(1) and timeout(1) have the same code.
pub(super) const MACHINE: u8 = 125;

/// A command that could not be executed, with the codes of shells.
pub(super) fn not_executed(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    }
}

/// A process that a signal has ended, with the code of shells.
pub(super) fn by_signal(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |signal| 128_u8.saturating_add(signal))
}

pub(super) fn of(failure: &Failure) -> u8 {
    match failure {
        Failure::Usage(_) => 2,
        Failure::Machine { .. } | Failure::CannotWrite { .. } => MACHINE,
        _ => UNAVAILABLE,
    }
}
