use std::{io, os::unix::net::UnixStream as StdUnixStream};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use super::peer::{self, FromGuardian, FromSupervisor, Lines};

/// The supervisor's connection to the guardian.
#[derive(Debug)]
pub(super) struct Guardian {
    pub(super) process: Option<Pid>,
    socket: UnixStream,
    lines: Lines,
    pub(super) is_gone: bool,
    /// Whether it is stopped together with the command, and confirms nothing.
    pub(super) is_suspended: bool,
}

impl Guardian {
    /// A connection over this socket.
    ///
    /// # Errors
    /// If the runtime cannot use the socket.
    pub(super) fn new(socket: StdUnixStream, process: Option<Pid>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            process,
            socket: UnixStream::from_std(socket)?,
            lines: Lines::default(),
            is_gone: false,
            is_suspended: false,
        })
    }

    /// The next message; `None` if the guardian has ended.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn next(&mut self) -> Option<FromGuardian> {
        loop {
            if let Some(message) = self.lines.next() {
                match message {
                    FromGuardian::Suspended => self.is_suspended = true,
                    FromGuardian::Resumed => self.is_suspended = false,
                    _ => {}
                }
                return Some(message);
            }
            let mut bytes = [0; 1024];
            match self.socket.read(&mut bytes).await {
                Ok(0) | Err(_) => {
                    self.is_gone = true;
                    return None;
                }
                Ok(read) => self.lines.push(&bytes[..read]),
            }
        }
    }

    /// Continues the guardian. Another process has continued the command, which needs its guardian
    /// again.
    pub(super) fn wake(&self) {
        if let (Some(process), false) = (self.process, self.is_gone) {
            let _gone = kill_process(process, Signal::CONT);
        }
    }

    /// A guardian that has ended takes no message. [`next`](Self::next) reports that.
    pub(super) async fn tell(&mut self, message: &FromSupervisor) {
        let told = self.socket.write_all(&peer::line(message)).await;
        if let Err(error) = told {
            tracing::debug!(%error, "the guardian is gone");
        }
    }
}
