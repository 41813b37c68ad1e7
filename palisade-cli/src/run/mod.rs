//! `palisade run`: a command under a lease, which is dead before the lease ends.
//!
//! Three processes, all of this program:
//!
//! | process | file | does |
//! |---|---|---|
//! | guardian | `guardian.rs` | the user starts it: terminal, signals, exit code |
//! | supervisor | `supervisor.rs`, `command.rs` | its child: the lease, the start of the command |
//! | launcher | `launcher.rs` | its child: becomes the command when both others know it |
//!
//! Guardian and supervisor each end the command when the lease ends, or the other one does.
//!
//! The guardian adopts the command if the supervisor dies. So a command always has a living parent
//! of ours as long as one of both lives, and the number of its process group stays its own.
//! docs/decisions/0048-a-guardian-and-a-supervisor.md has the reasons.

pub(crate) mod boot_time;
mod cgroup;
mod command;
pub(crate) mod countdown;
mod environment;
mod exit;
mod fate;
mod group;
mod guardian;
mod launcher;
mod lease;
mod peer;
mod report;
mod signals;
mod supervisor;
mod terminal;
mod to_guardian;

use std::{env, ffi::OsStr, process::ExitCode};

pub(crate) use self::guardian::guard;

/// This program, also after its file was replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The names under which this program starts itself.
const SUPERVISOR: &str = "palisade-supervisor";
const LAUNCHER: &str = "palisade-launcher";

/// Plays the part whose name this process has, if it has one.
pub(crate) fn part() -> Option<ExitCode> {
    let name = env::args_os().next()?;
    if name == OsStr::new(SUPERVISOR) {
        return Some(supervisor::supervise());
    }
    (name == OsStr::new(LAUNCHER)).then(launcher::become_the_command)
}
