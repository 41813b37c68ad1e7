//! One acquisition, from the first request until nothing of it is left: the decisions, as a value
//! without I/O, clock, task, lock or source of chance.
//!
//! [`Acquisition::on`] takes an [`Event`] and returns the next [`Step`]. [`driver`] takes the steps
//! on Tokio, over the [`Requests`] of a lock service. The model checker takes them over a model of
//! a server and a network.

#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "drivers, lock services and models tell all of them apart"
)]

mod bounds;
mod driver;
mod giving_back;
mod looking;
#[cfg(feature = "test-util")]
mod record;
#[cfg(feature = "test-util")]
mod relative;
mod state;
#[cfg(test)]
mod tests;
mod wake_ups;

use std::time::Duration;

pub(crate) use self::driver::acquire;
pub use self::{
    bounds::{Bounds, repeat},
    driver::{Ended, Requests, Shutdown, run},
    state::Acquisition,
    wake_ups::WakeUps,
};
#[cfg(feature = "test-util")]
pub use self::{
    record::{Decision, Decisions, Record},
    relative::Rebase,
};
use crate::{
    AcquireRequest, Error, ErrorKind, Grant, Moment, Outcome, Pauses, Released, Ttl, Wait,
};

/// The purpose of an acquisition. It does not change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Terms {
    /// How long to wait.
    pub wait: Wait,
    /// Looks again and again after these pauses, instead of queueing.
    pub polls: Option<Box<Pauses>>,
    /// The others that may have the lease.
    pub sharing: Sharing,
    /// The number of grants of this acquisition that arrived after the end of their leases, before
    /// this attempt. `None` leaves the caller to judge whether a lease has ended.
    pub late_grants: Option<u32>,
    /// The length of the lease.
    pub ttl: Duration,
    /// A random number that spreads pauses, so that clients that lost the server together do not
    /// come back together.
    pub spread: u64,
    /// The time for which a silent service is asked.
    pub bounds: &'static Bounds,
    /// See [`Requests::longest_request`].
    pub(crate) longest_request: Duration,
}

/// The others that may have the lease of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// No other caller knows the holder.
    Alone,
    /// Others may repeat the acquisition. A release ends the lease for all of them.
    Repeated,
    /// Guards of one owner may have it. Each gives back its own hold.
    Holds,
}

/// Something that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A caller wants the lease. `hears`: wake-ups would arrive from now on.
    Started {
        /// See [`Requests::hears`].
        hears: bool,
    },
    /// The request that was sent last has its answer.
    Replied {
        /// The answer.
        reply: Reply,
        /// See [`Requests::has_copied`].
        copied: bool,
    },
    /// A wake-up has arrived.
    Woken(Wake),
    /// The moment of the last step has come.
    Due,
    /// The caller gives the lease back. `held`: the caller has not seen that it is lost.
    Release {
        /// Whether the lease is held, as far as the caller knows.
        held: bool,
    },
    /// The caller gives the attempt up, and waits until that has happened.
    GiveUp,
    /// The caller has gone. The attempt is given back although no caller waits for it.
    Gone,
    /// The manager shuts down: there will be no watchdog to give the attempt back.
    Closed,
}

/// The next thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Send this request instead of the one that may be under way, then wait as below.
    Send {
        /// The request.
        request: Request,
        /// The moment at which [`Event::Due`] is due.
        until: Moment,
    },
    /// Wait for an answer, a wake-up, or this moment.
    Wait {
        /// The moment at which [`Event::Due`] is due.
        until: Moment,
    },
    /// Give the caller this answer. [`Acquisition::owes`] says whether anything has to be given
    /// back.
    Answer(Answer),
}

/// One request to a lock service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Asks for the lease.
    Look {
        /// If true, the attempt takes or keeps a place in the queue while somebody else has the
        /// lease. If false, it leaves the queue.
        queue: bool,
    },
    /// Turns an offer into a lease.
    Confirm(Grant),
    /// Ends the lease.
    Release {
        /// Whether a copy of a request of this acquisition may arrive later.
        tombstone: bool,
    },
    /// Ends the attempt, whatever has become of it.
    Cancel,
}

/// The answer of a lock service to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The attempt has the lease, and need not confirm it.
    Granted(Grant),
    /// The attempt has a lease that has to be confirmed.
    Offered(Grant),
    /// Somebody else has the lease, and the attempt has nothing.
    Held {
        /// The time after which the present lease ends unless it is renewed.
        left: Duration,
    },
    /// Somebody else has the lease, and the attempt has a place in the queue.
    Queued {
        /// The time after which the present lease ends unless it is renewed.
        left: Duration,
        /// The attempt looks again after this time, even if it hears nothing.
        look_again: Duration,
    },
    /// The offer that was to be confirmed is gone.
    Gone,
    /// The answer to a release.
    Released(Released),
    /// The attempt has nothing, and never will.
    Cancelled,
    /// The request failed.
    Failed(Failure),
}

/// News from a lock service that no request has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wake {
    /// It may be the turn of the attempt, or a notice may have been lost.
    Look,
    /// It is the turn of the attempt, and the lease has to be confirmed.
    Offered(Grant),
    /// It is the turn of the attempt, and it need not confirm the lease.
    Granted(Grant),
    /// The task that looks for several attempts has had no answer since then.
    Silent(Moment),
    /// The task that looks for several attempts has an answer again.
    Heard,
}

/// An error, as far as decisions need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// Whether the request may have taken effect.
    pub outcome: Outcome,
}

/// The answer to a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The caller has the lease.
    Granted(Grant),
    /// Somebody else had the lease until the wait was over.
    Held {
        /// The time after which the present lease ends unless it is renewed.
        left: Duration,
    },
    /// The attempt failed. The outcome is the outcome of the whole attempt.
    Failed(Failure),
    /// The grant arrived after its own end: begin again with a new holder.
    Late,
    /// As `Late`, but no further attempt is made.
    TooLate,
    /// The answer to a release.
    Released(Released),
    /// Nothing of the attempt is left.
    Clean,
    /// No more requests are sent. The rest of the attempt ends by itself.
    Abandoned,
}

/// No answer came in time.
const SILENT: Failure = Failure {
    kind: ErrorKind::Unavailable,
    outcome: Outcome::Unknown,
};

impl Failure {
    /// The part of an error that decisions need.
    #[must_use]
    pub const fn of(error: &Error) -> Self {
        Self {
            kind: error.kind(),
            outcome: error.outcome(),
        }
    }

    const fn unknown_if(mut self, is_unknown: bool) -> Self {
        if is_unknown {
            self.outcome = Outcome::Unknown;
        }
        self
    }
}

impl Terms {
    /// The terms of an attempt that does not wait.
    #[must_use]
    pub const fn new(sharing: Sharing, ttl: Ttl) -> Self {
        Self {
            wait: Wait::Never,
            polls: None,
            sharing,
            late_grants: None,
            ttl: ttl.get(),
            spread: 0,
            bounds: &Bounds::USUAL,
            longest_request: Duration::ZERO,
        }
    }

    /// The terms of a request for a lock service that knows nothing of the caller.
    #[must_use]
    pub fn of(request: &AcquireRequest) -> Self {
        Self {
            spread: request.attempt.id.spread(),
            ..Self::new(Sharing::Repeated, request.ttl).waiting(request.wait)
        }
    }

    /// The same terms with this wait. A wait until [`Moment::NEVER`] has no bound.
    #[must_use]
    pub fn waiting(mut self, wait: Wait) -> Self {
        self.wait = match wait {
            Wait::Until(Moment::NEVER) => Wait::Forever,
            wait => wait,
        };
        self
    }
}
