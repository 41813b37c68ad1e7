//! `palisade run`: runs a command under a lease. The command is dead before the lease ends.
//!
//! There are three processes, all of this program:
//!
//! | process | file | does |
//! |---|---|---|
//! | guardian | `guardian.rs` | the user starts it: terminal, signals, exit code |
//! | supervisor | `supervisor.rs`, `command.rs` | its child: the lease, the start of the command |
//! | launcher | `launcher.rs` | its child: becomes the command when both others know it |
//!
//! Guardian and supervisor each end the command when the lease ends, or when the other one has
//! ended.
//!
//! The guardian adopts the command if the supervisor dies. So the parent of a command is a process
//! of ours as long as guardian or supervisor lives, and the number of its process group is not used
//! again. docs/decisions/0048-a-guardian-and-a-supervisor.md has the reasons.

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

/// This program, even after its file was replaced.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The names under which this program starts itself.
const SUPERVISOR: &str = "palisade-supervisor";
const LAUNCHER: &str = "palisade-launcher";

/// Runs as the launcher or the supervisor, if this process has the name of one of them.
pub(crate) fn part() -> Option<ExitCode> {
    let name = env::args_os().next()?;
    if name == OsStr::new(SUPERVISOR) {
        return Some(supervisor::supervise());
    }
    (name == OsStr::new(LAUNCHER)).then(launcher::become_the_command)
}
