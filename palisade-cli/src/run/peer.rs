//! The messages between guardian and supervisor: lines of JSON over a pair of sockets. The end of
//! this stream means that the other process has ended.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::boot_time::BootTime;

/// From the supervisor to the guardian.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FromSupervisor {
    /// The lease lasts until this moment.
    Deadline(BootTime),
    /// There is a process for the command, which waits for [`FromGuardian::Go`].
    Started { leader: i32 },
    /// This signal has stopped the command. `None`: the command goes on.
    Stopped(Option<i32>),
    /// All processes of the command have ended, so the guardian may forget their group. `signal`
    /// has ended the leader.
    Ended { signal: Option<i32> },
}

/// From the guardian to the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FromGuardian {
    /// The guardian knows that the lease lasts until this moment.
    Confirmed(BootTime),
    /// The guardian knows the command, which may begin.
    Go,
    /// A user stops the guardian together with the command.
    Suspended,
    /// The guardian goes on, and needs the present deadline.
    Resumed,
    /// Stop waiting for the lease, because of this signal.
    Stop(i32),
}

/// A message as a line.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The lines of a stream, as they come in.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next complete message. A line that is no message is skipped.
    pub(crate) fn next<M: DeserializeOwned>(&mut self) -> Option<M> {
        loop {
            let end = self.0.iter().position(|byte| *byte == b'\n')?;
            let line: Vec<u8> = self.0.drain(..=end).collect();
            if let Ok(message) = serde_json::from_slice(&line) {
                return Some(message);
            }
        }
    }
}

/// The socket that the parent of this process has put in the place of stdin.
///
/// # Errors
/// If stdin cannot be duplicated.
pub(crate) fn inherited() -> io::Result<UnixStream> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(UnixStream::from(socket))
}

/// Sends an open file, and one byte with it.
///
/// # Errors
/// The error of the system.
pub(crate) fn send_file(socket: &UnixStream, file: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file];
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(
        socket,
        &[IoSlice::new(b"f")],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Waits for an open file. Nothing more is read.
///
/// # Errors
/// The error of the system; [`io::ErrorKind::UnexpectedEof`] if the other process has ended.
pub(crate) fn receive_file(socket: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(socket, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let is_whole = received.bytes == 1 && !received.flags.contains(ReturnFlags::CTRUNC);
    let files = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.flatten().next();
    file.filter(|_| is_whole)
        .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
