use std::fs::File;

use nix::unistd::{getpgrp, getsid};
use rustix::{
    process::Pid,
    termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp},
};

/// The controlling terminal, where shells control jobs.
#[derive(Debug)]
pub(super) struct Terminal {
    file: File,
    own: Pid,
    /// Whether a pipe connects this process to others, which may need the terminal: `| less`.
    is_shared: bool,
    /// The process group of the command, while that group is in the foreground in place of ours.
    given_to: Option<Pid>,
    /// The modes of the terminal before the command had it.
    modes: Option<Termios>,
}

impl Terminal {
    /// Opens the terminal. `None` if there is none, as in a crontab, or if this process may not
    /// control its jobs, because they belong to another container.
    pub(super) fn open(is_shared: bool) -> Option<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .ok()?;
        Some(Self {
            file,
            // The group is zero if its leader is outside of this container.
            own: Pid::from_raw(getpgrp().as_raw())?,
            is_shared,
            given_to: None,
            modes: None,
        })
    }

    /// Puts the command into the foreground if this process is there. Does nothing if a pipe
    /// connects this process to others: then the command gets the terminal only by
    /// [`give`](Self::give).
    pub(super) fn offer(&mut self, group: Pid) {
        if !self.is_shared {
            self.give(group);
        }
    }

    /// Puts the command into the foreground if this process is there, and returns whether it was.
    pub(super) fn give(&mut self, group: Pid) -> bool {
        if tcgetpgrp(&self.file) != Ok(self.own) {
            return false;
        }
        if self.modes.is_none() {
            self.modes = tcgetattr(&self.file).ok();
        }
        let is_given = tcsetpgrp(&self.file, group).is_ok();
        self.given_to = is_given.then_some(group);
        is_given
    }

    pub(super) const fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Whether the command has the terminal.
    pub(super) const fn is_given(&self) -> bool {
        self.given_to.is_some()
    }

    /// Takes the foreground back, if the command still has it.
    pub(super) fn take_back(&mut self) {
        let Some(group) = self.given_to.take() else {
            return;
        };
        if tcgetpgrp(&self.file) == Ok(group)
            && let Err(error) = tcsetpgrp(&self.file, self.own)
        {
            tracing::debug!(%error, "the terminal is gone");
        }
    }

    /// Takes the foreground back after a command that was killed, and restores the modes, because
    /// the command had no time to do that.
    pub(super) fn take_back_in_order(&mut self) {
        let is_given = self.is_given();
        self.take_back();
        if let (true, Some(modes)) = (is_given, &self.modes)
            && let Err(error) = tcsetattr(&self.file, OptionalActions::Now, modes)
        {
            tracing::debug!(%error, "the terminal is gone");
        }
    }
}

/// Whether there is a shell that resumes this process if it is stopped. A shell gives each job a
/// process group of its own. If this process is in the group of the session's leader, there is no
/// such shell.
pub(super) fn has_shell() -> bool {
    getsid(None) != Ok(getpgrp())
}
