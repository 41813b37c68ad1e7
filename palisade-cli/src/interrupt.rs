use std::{fmt, io};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that asks the program to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interrupt {
    /// SIGINT, from a keyboard.
    CtrlC,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

impl Interrupt {
    /// 128 plus the number of the signal, as in shells.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::HangUp => 129,
            Self::CtrlC => 130,
            Self::Terminate => 143,
        }
    }
}

impl fmt::Display for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CtrlC => "interrupted (SIGINT)",
            Self::Terminate => "terminated (SIGTERM)",
            Self::HangUp => "terminal gone (SIGHUP)",
        })
    }
}

/// Listens for all of these signals. Once this value exists, none of them ends the process by
/// itself.
#[derive(Debug)]
pub struct Interrupts {
    int: Signal,
    term: Signal,
    hup: Signal,
}

impl Interrupts {
    /// Starts to listen.
    ///
    /// # Errors
    /// If the operating system refuses a signal handler.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            int: signal(SignalKind::interrupt())?,
            term: signal(SignalKind::terminate())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal.
    ///
    /// # Cancel safety
    /// Safe: the next call returns a signal that arrives later.
    pub async fn next(&mut self) -> Interrupt {
        tokio::select! {
            biased;
            _ = self.int.recv() => Interrupt::CtrlC,
            _ = self.term.recv() => Interrupt::Terminate,
            _ = self.hup.recv() => Interrupt::HangUp,
        }
    }
}
