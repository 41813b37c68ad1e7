use std::{error::Error, io, net::SocketAddr, path::PathBuf, process::ExitCode};

use crate::{Address, Interrupt};

/// The reason why the program ends without having done its task. The message is one line, which
/// says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The arguments ask for something impossible.
    #[error("{0}")]
    Usage(String),
    /// No answer, or not the expected one, from the lock service or the store.
    #[error(
        "cannot use the {role} at {address}: {why}; check that {}--{option} is right",
        running(address)
    )]
    Unreachable {
        /// The server: lock service or store.
        role: &'static str,
        /// The option that names it.
        option: &'static str,
        /// The address that was tried.
        address: Address,
        /// The reason.
        why: String,
    },
    /// A file to work on, or its folder, does not exist.
    #[error("cannot use the store at {address}: {what} does not exist; {then}, or check --store")]
    Missing {
        /// The address that was tried.
        address: Address,
        /// The file or its folder.
        what: &'static str,
        /// The remedy.
        then: &'static str,
    },
    /// A server answers, but cannot be used: it refuses us, or lacks our tables.
    #[error("{0}")]
    Refused(String),
    /// A server that answered at the start is gone.
    #[error("{0}; is the lock service or the store down?")]
    ServerLost(String),
    /// The address to listen on is in use, or is not an address of this machine.
    #[error("cannot listen on {addr}: {source}; choose another address with --addr")]
    CannotListen {
        /// The address.
        addr: SocketAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file that cannot be written.
    #[error("cannot write {}: {source}; choose another place", path.display())]
    CannotWrite {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A call to the operating system failed, such as the start of a process.
    #[error("{doing} failed: {source}")]
    Machine {
        /// The task that failed, such as "starting a process".
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The work was done, and the result is not the expected one.
    #[error("{0}")]
    NotAsTold(String),
    /// A signal asked us to stop.
    #[error("{interrupt}: {then}")]
    Stopped {
        /// The signal.
        interrupt: Interrupt,
        /// The consequence.
        then: &'static str,
    },
}

impl Failure {
    /// For `map_err` after a call to the operating system.
    pub fn machine(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Machine { doing, source }
    }

    /// The exit code, as `--help` documents it.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::NotAsTold(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable { .. }
            | Self::Missing { .. }
            | Self::Refused(_)
            | Self::ServerLost(_) => 3,
            Self::CannotListen { .. } => 4,
            Self::CannotWrite { .. } | Self::Machine { .. } => 5,
            Self::Stopped { interrupt, .. } => interrupt.exit_code(),
        })
    }
}

/// The part of the advice for a server, because a file does not run.
fn running(address: &Address) -> &'static str {
    match address.scheme() {
        "sqlite" => "",
        _ => "it runs and that ",
    }
}

/// The error and its causes, unless its text has them already. The outermost error alone
/// often says little.
#[must_use]
pub fn with_sources(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !told.contains(&text) {
            told = format!("{told}: {text}");
        }
        next = cause.source();
    }
    told
}
