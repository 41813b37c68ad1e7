//! The machine of `lock_core::acquisition` as it ships, two or three of them, against a lock
//! service by the contract, and a network that delays, loses, repeats and reorders.
//!
//! Only the server and the network are modelled here. Each request is one step of the server. Time
//! and tokens are relative: the clock stands still at [`NOW`], a tick moves everything else to the
//! past, and tokens that are over are forgotten. So states repeat, and all of them can be looked
//! at.

mod actions;
mod driver;
mod properties;
mod relative;
mod server;
mod states;
mod tests;

use std::{collections::BTreeSet, time::Duration};

use lock_core::backend::{Acquisition, Bounds, Grant, Moment, Reply, Sharing, Terms, Wait, Wake};
use stateright::{Model, Property};

pub(crate) use self::actions::Action;
use self::server::{Copy, Server};

/// The length of a lease, and of an offer.
const TTL: Duration = ticks(2);
const OFFER: Duration = ticks(1);
/// A service is silent for as long as this at most, so moments before the origin are alike.
const LONG: u8 = 2;
const NOW: Moment = Moment::from_origin(ticks(LONG + 1));
const TICK: Duration = ticks(1);

const fn ticks(ticks: u8) -> Duration {
    Duration::from_millis(ticks as u64)
}

const BOUNDS: Bounds = Bounds {
    short: TICK,
    long: ticks(LONG),
    grace: TICK,
    channel: TICK,
    pause: TICK,
    pause_max: TICK,
    last: Duration::ZERO,
    background_pause: (TICK, TICK),
    shared: TTL,
};

/// How a caller waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Never,
    /// For two ticks.
    Bounded,
    Forever,
}

/// How a lock service wakes the first in its queue. Any wake-up may be late, lost or repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waking {
    /// With an offer, as Redis does.
    Offers,
    /// With the lease, as the service in memory does.
    Grants,
    /// With a hint, as PostgreSQL does. One task looks for all waiters of a process.
    Hints,
}

/// One rule left out, by a wrapper around the machine or by a server. Each of them must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// `Held` is answered although a copy of the request may arrive later.
    HeldDespiteCopy,
    /// A release leaves no tombstone although a copy of a request may arrive later.
    NoTombstone,
    /// A caller that goes away while a request is under way cancels nothing.
    LeavesSilently,
    /// An error that says that nothing has changed is believed, whatever was sent before.
    ErrorsBelieved,
    /// A lease is counted from its answer.
    CountedFromAnswer,
    /// An offer is taken for a lease.
    OfferTaken,
    /// A pushed lease is counted from the push.
    PushBelieved,
    /// The release of a lease that was lost is answered `Released`.
    LossReleased,
    /// A waiter bears the silence of the common task without a bound.
    SilenceBorne,
    /// A waiter does not look again by itself.
    NeverLooksAgain,
    /// The common task looks for no attempt.
    NobodyStirred,
    /// `Held` is answered although a try was not undone at each node of Redlock.
    UndoIncomplete,
    /// Server: a cancel leaves no tombstone (clause 9).
    CancelForgotten,
    /// Server: a release is not compared (clause 7).
    ReleaseNotCompared,
    /// Server: a confirm is not compared.
    ConfirmNotCompared,
    /// Server: a look that does not queue keeps its place (clause 8).
    PlaceKept,
    /// Server: tokens are not counted (clause 1).
    TokenRepeats,
}

/// The model: who waits how, what the service does, how many faults happen, and which rule is left
/// out.
#[derive(Clone, Debug)]
pub(crate) struct Machines {
    callers: &'static [Patience],
    waking: Waking,
    /// Requests that are lost, refused or repeated, and silences of the common task.
    faults: u8,
    /// Callers may go away, give up, or see the manager shut down.
    leave: bool,
    /// Attempts may begin without a channel for wake-ups.
    deaf: bool,
    /// An answer arrives as soon as its request has been run.
    prompt: bool,
    flaw: Option<Flaw>,
}

flawed!(Machines);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    server: Server,
    clients: Vec<Client>,
    faults: u8,
    /// The greatest token that a caller knows.
    greatest: u64,
    /// The common task has no answer.
    silent: bool,
    /// A property of a step was broken.
    broken: BTreeSet<Lie>,
}

/// A wrong step, whatever state it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Lie {
    OutOfOrder,
    LossIsReleased,
    ReleaseIsLoss,
    SilenceUnbounded,
    StrangerEnded,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Client {
    machine: Acquisition,
    stage: Stage,
    /// The request whose answer is awaited, and when it was sent; then its answer.
    sent: Option<(Copy, Moment)>,
    reply: Option<Reply>,
    /// Copies of requests that may arrive at any time, and as often as the network likes.
    late: BTreeSet<Copy>,
    /// Wake-ups that may arrive at any time.
    wakes: Vec<Wake>,
    until: Moment,
    /// When the wait has to be over.
    end: Moment,
    /// The greatest token that any caller knew when this attempt began.
    floor: u64,
    /// The lease lived when its release began, and the caller relied on it.
    released: Option<(bool, bool)>,
    /// The manager has shut down: there is no watchdog.
    is_closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    New,
    Waiting,
    Holding(Grant),
    /// The caller gives the lease with this token back, and waits for the answer.
    GivingBack(u64),
    /// The caller has gone, and the machine goes on. It may have the lease with this token.
    Background(u64),
    /// It was answered that nothing is left, or it was not.
    Over {
        clean: bool,
    },
}

const ONE_AND_ONE: &[Patience] = &[Patience::Never, Patience::Forever];
const BOUNDED: &[Patience] = &[Patience::Bounded, Patience::Forever];
const THREE: &[Patience] = &[Patience::Never, Patience::Forever, Patience::Forever];

impl Machines {
    const fn of(callers: &'static [Patience], waking: Waking, faults: u8) -> Self {
        Self {
            callers,
            waking,
            faults,
            leave: true,
            deaf: false,
            prompt: false,
            flaw: None,
        }
    }

    /// One looks, the other waits without bound.
    pub(crate) const fn look_and_wait(waking: Waking, faults: u8) -> Self {
        Self::of(ONE_AND_ONE, waking, faults)
    }

    /// One waits for two ticks, the other without bound.
    pub(crate) const fn bounded(waking: Waking, faults: u8) -> Self {
        Self::of(BOUNDED, waking, faults)
    }

    /// One looks, two wait without bound.
    pub(crate) const fn three(waking: Waking, faults: u8) -> Self {
        Self {
            leave: false,
            prompt: true,
            ..Self::of(THREE, waking, faults)
        }
    }

    /// Answers are not late. Requests may be.
    pub(crate) const fn prompt(mut self) -> Self {
        self.prompt = true;
        self
    }

    /// Attempts may begin before there is a channel.
    pub(crate) const fn deaf(mut self) -> Self {
        self.deaf = true;
        self
    }
}

impl Client {
    fn new(patience: Patience) -> Self {
        let mut terms = Terms::new(Sharing::Alone, lock_core::Ttl::secs(1));
        (terms.bounds, terms.ttl, terms.late_grants) = (&BOUNDS, TTL, Some(0));
        let terms = terms.waiting(match patience {
            Patience::Never => Wait::Never,
            Patience::Bounded => Wait::Until(NOW + ticks(2)),
            Patience::Forever => Wait::Forever,
        });
        let end = match patience {
            Patience::Never => NOW,
            Patience::Bounded => NOW + ticks(2),
            Patience::Forever => Moment::NEVER,
        };
        Self {
            machine: Acquisition::new(terms),
            stage: Stage::New,
            sent: None,
            reply: None,
            late: BTreeSet::new(),
            wakes: Vec::new(),
            until: Moment::NEVER,
            end,
            floor: 0,
            released: None,
            is_closed: false,
        }
    }

    /// A wake-up is under way, if anybody listens.
    fn push(&mut self, wake: Wake) {
        if self.stage == Stage::Waiting && !self.wakes.contains(&wake) {
            self.wakes.push(wake);
        }
    }
}

impl Model for Machines {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            server: Server::default(),
            clients: self.callers.iter().map(|it| Client::new(*it)).collect(),
            faults: self.faults,
            greatest: 0,
            silent: false,
            broken: BTreeSet::new(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.take(&mut state, action);
        self.forget(&mut state);
        self.sort(&mut state);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
