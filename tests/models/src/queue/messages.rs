use super::{Attempt, Token};

/// A request of a client. Every request names the attempt that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Request {
    /// Grant me the lease or queue me. Sent again it is a poll.
    Acquire(Attempt),
    /// Give a provisional lease its full length.
    Confirm(Attempt, Token),
    /// End the acquisition.
    Release(Attempt, Token, Tombstone),
    /// End this attempt, whatever its state.
    Cancel(Attempt),
    /// Nobody waits for this grant: end the attempt, unless the acquisition has another lease, or
    /// this one was confirmed.
    SendBack(Attempt, Token),
}

impl Request {
    pub(crate) const fn by(self) -> Attempt {
        match self {
            Self::Acquire(by)
            | Self::Confirm(by, _)
            | Self::Release(by, ..)
            | Self::Cancel(by)
            | Self::SendBack(by, _) => by,
        }
    }
}

/// Whether a release leaves one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Tombstone {
    Left,
    /// No other attempt has the acquisition, and all its acquires were answered.
    LeftOut,
}

/// A message from the server to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Answer {
    /// The lease was granted while the attempt was in the queue. Always provisional.
    Push(Attempt, Token),
    /// To an acquire: the lease is yours.
    Granted {
        to: Attempt,
        token: Token,
        provisional: bool,
    },
    /// To an acquire: this attempt or its acquisition has ended.
    Ended(Attempt),
    /// To a confirm: the lease has its full length.
    Confirmed(Attempt, Token),
    /// To a confirm: the lease is not, or no longer, yours.
    NotConfirmed(Attempt, Token),
    /// To a release.
    Released(Attempt),
    /// To a release: the lease is not, or no longer, yours.
    NotReleased(Attempt),
    /// To a cancel.
    Cancelled(Attempt),
}

impl Answer {
    pub(crate) const fn to(self) -> Attempt {
        match self {
            Self::Push(to, _)
            | Self::Granted { to, .. }
            | Self::Ended(to)
            | Self::Confirmed(to, _)
            | Self::NotConfirmed(to, _)
            | Self::Released(to)
            | Self::NotReleased(to)
            | Self::Cancelled(to) => to,
        }
    }
}
