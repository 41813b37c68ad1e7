use std::fs::File;

use rustix::{
    process::{Pid, getpgrp, getpid, getsid},
    termios::{tcgetpgrp, tcsetpgrp},
};

/// The terminal of this session, where shells control jobs.
#[derive(Debug)]
pub(super) struct Terminal {
    file: File,
    own: Pid,
    /// The process group of the command, while it is in the foreground in the place of ours.
    given_to: Option<Pid>,
}

impl Terminal {
    /// `None` if there is none, as in a crontab.
    pub(super) fn open() -> Option<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .open("/dev/tty")
            .ok()?;
        Some(Self {
            file,
            own: getpgrp(),
            given_to: None,
        })
    }

    /// Puts the command into the foreground if this process is there.
    pub(super) fn give(&mut self, group: Pid) {
        if tcgetpgrp(&self.file) == Ok(self.own) && tcsetpgrp(&self.file, group).is_ok() {
            self.given_to = Some(group);
        }
    }

    /// Whether the command has it.
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
}

/// Whether there is a shell that resumes this process if it is stopped: a leader of a session has
/// none above it.
pub(super) fn has_shell() -> bool {
    getsid(None) != Ok(getpid())
}
