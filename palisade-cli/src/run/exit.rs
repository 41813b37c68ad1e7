//! The exit codes that are not those of the command. They are in `--help`, too.

use std::io;

use crate::failure::Failure;

/// The lock service or the store cannot be used: `EX_UNAVAILABLE` of sysexits.h.
pub(super) const UNAVAILABLE: u8 = 69;
/// Try again later: `EX_TEMPFAIL` of sysexits.h.
pub(super) const HELD: u8 = 75;
/// Its time was over, as timeout(1) says it.
pub(super) const LOST: u8 = 124;
/// We have failed ourselves, as env(1) and timeout(1) say it.
pub(super) const MACHINE: u8 = 125;

/// A command that could not be executed, as shells say it.
pub(super) fn not_executed(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    }
}

/// A process that a signal has ended, as shells say it.
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
