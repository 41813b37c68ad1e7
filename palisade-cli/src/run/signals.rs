use std::{
    fs, io,
    os::fd::{AsFd, BorrowedFd},
};

use nix::sys::{
    signal::{SigSet, SigmaskHow, Signal},
    signalfd::{SfdFlags, SignalFd},
};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

/// The signals of the guardian as a file. The signals are blocked and not handled, so that the
/// command inherits the settings of the user's shell. A signal that is ignored, as SIGHUP is by
/// `nohup`, is not among them, because it would wake this process if it was blocked.
#[derive(Debug)]
pub(super) struct Signals {
    before: SigSet,
    file: SignalFd,
}

const BLOCKED: [Signal; 12] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGTSTP,
    Signal::SIGCONT,
    Signal::SIGCHLD,
    // This allows the guardian to take the terminal back, and to write to it, from the background.
    Signal::SIGTTOU,
    Signal::SIGTTIN,
];

impl Signals {
    /// Blocks the signals in this process, which has one thread.
    ///
    /// # Errors
    /// If the system has no room for another file.
    pub(super) fn block() -> io::Result<Self> {
        heed_children()?;
        let ignored = ignored()?;
        let heeded = BLOCKED.into_iter();
        let blocked: SigSet = heeded.filter(|signal| !ignored.contains(*signal)).collect();
        let before = blocked.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let file = SignalFd::with_flags(&blocked, flags)?;
        Ok(Self { before, file })
    }

    /// The next signal; `None` if there is none at the moment.
    pub(super) fn next(&self) -> Option<Signal> {
        let signal = self.file.read_signal().ok()??;
        Signal::try_from(i32::try_from(signal.ssi_signo).ok()?).ok()
    }

    /// Calls `then` with the earlier mask, which a new process inherits.
    ///
    /// # Errors
    /// The error of `then`, or of the change of the mask.
    pub(super) fn unblocked<T>(&self, then: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let blocked = self.before.thread_swap_mask(SigmaskHow::SIG_SETMASK)?;
        let done = then();
        blocked.thread_set_mask()?;
        done
    }
}

/// The signals that are meant for the guardian or the command, and not for the supervisor. When a
/// service is stopped, all of its processes get SIGTERM, and the supervisor has to release the
/// lease.
pub(super) fn not_for_the_supervisor() -> SigSet {
    let not = [Signal::SIGCONT, Signal::SIGCHLD, Signal::SIGTTIN];
    let signals = BLOCKED.into_iter();
    signals.filter(|signal| !not.contains(signal)).collect()
}

/// Sets a handler for SIGCHLD. If SIGCHLD is ignored, the system reaps children itself, and the
/// program that started this process may have left it ignored. A handler ends that, even if the
/// mask keeps it from being called. tokio can set a handler without unsafe code.
fn heed_children() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    let _handled = signal(SignalKind::child())?;
    Ok(())
}

/// The signals that the program that started this process has left ignored. No safe function tells
/// that, but `/proc` does: see proc_pid_status(5).
fn ignored() -> io::Result<SigSet> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let mask = mask.ok_or(io::ErrorKind::InvalidData)?;
    let is_ignored = |signal: &Signal| mask & (1 << (*signal as i32 - 1)) != 0;
    Ok(BLOCKED.into_iter().filter(is_ignored).collect())
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
