//! The ways in which a command can end.

use rustix::process::WaitIdStatus;

/// The end of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The command got no lease.
    NoLease,
    /// This signal ended the wait for the lease. `None`: the guardian has ended.
    Stopped(Option<i32>),
    /// The lease ended before the command was started.
    NotStarted(Cause),
    /// The system did not execute the command: the number of the error.
    NotExecuted(i32),
    /// The command has ended by itself, or by a signal of another process.
    Ended(Exit),
    /// This program has ended the command.
    Lost(Cause),
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Code(i32),
    Signal(i32),
}

/// The reason why the command was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The lease was not renewed in time, or the guardian has not confirmed it.
    NotRenewed,
    /// The lock service has reported the loss: the lease was released by force, or the service has
    /// lost it.
    Lost,
    /// The guardian has ended.
    GuardianGone,
}

impl Fate {
    /// Whether this program has started no command, on purpose.
    pub(super) const fn was_not_begun(self) -> bool {
        matches!(self, Self::Stopped(_) | Self::NotStarted(_))
    }
}

impl Exit {
    pub(super) fn of(status: &WaitIdStatus) -> Self {
        match status.terminating_signal() {
            Some(signal) => Self::Signal(signal),
            None => Self::Code(status.exit_status().unwrap_or_default()),
        }
    }
}

impl Cause {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::NotRenewed => {
                "the lease was not renewed in time, or the guardian has not confirmed it"
            }
            Self::Lost => "the lease was lost",
            Self::GuardianGone => "its guardian, the process that was started, has ended",
        }
    }
}
