use std::{io, net::SocketAddr, path::PathBuf, process::ExitCode};

use crate::{address::Address, interrupt::Interrupt};

/// Why the program ends without having done what it was asked. One line, and it says what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Something that the arguments ask for and that cannot be.
    #[error("{0}")]
    Usage(String),
    /// No answer, or not the one we need, from the lock service or the store.
    #[error(
        "cannot use the {role} at {address}: {why}; check that it runs and that --{option} is right"
    )]
    Unreachable {
        role: &'static str,
        option: &'static str,
        address: Address,
        why: String,
    },
    /// A server that was there at the start has gone.
    #[error("{0}; is the lock service or the store down?")]
    ServerLost(String),
    /// The address to listen on is in use, or is not ours.
    #[error("cannot listen on {addr}: {source}; choose another address with --addr")]
    CannotListen { addr: SocketAddr, source: io::Error },
    /// A file that cannot be written.
    #[error("cannot write {}: {source}; choose another place", path.display())]
    CannotWrite { path: PathBuf, source: io::Error },
    /// A process that cannot be started, stopped, resumed or talked to.
    #[error("{doing} failed: {source}")]
    Machine {
        doing: &'static str,
        source: io::Error,
    },
    /// The scenario came out differently.
    #[error("{0}")]
    NotAsTold(String),
    /// Somebody asked us to stop something that can be taken up again.
    #[error("{interrupt}: {then}")]
    Stopped {
        interrupt: Interrupt,
        then: &'static str,
    },
    /// Somebody asked us to stop.
    #[error("{0}: the client processes are ended, too")]
    Interrupted(Interrupt),
}

impl Failure {
    /// For `map_err` after a call to the operating system.
    pub(crate) fn machine(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Machine { doing, source }
    }

    /// The exit code, as `--help` documents it.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NotAsTold(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable { .. } | Self::ServerLost(_) => 3,
            Self::CannotListen { .. } => 4,
            Self::CannotWrite { .. } | Self::Machine { .. } => 5,
            Self::Interrupted(interrupt) | Self::Stopped { interrupt, .. } => interrupt.exit_code(),
        })
    }
}
