//! The machine of `lock_core::acquisition` as it ships, one to three of them, against a lock
//! service, and a network that delays, loses, repeats and reorders.
//!
//! Only the server, the network and the faults of both are modelled here. Each request is one step
//! of the server. Time and tokens are relative: the clock stands still at [`NOW`], a tick moves
//! everything else to the past, and tokens that are over are forgotten. So states repeat, and all
//! of them can be looked at.

mod actions;
mod database;
mod driver;
mod flaw;
mod one_key;
mod properties;
mod relative;
mod scenario;
mod server;
mod state;
mod states;
mod tests;

use std::time::Duration;

use lock_core::backend::{Bounds, Moment};
use stateright::{Model, Property};

pub(crate) use self::{actions::Action, flaw::Flaw, state::State};

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

/// One attempt of an acquisition, made by one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    patience: Patience,
    acquisition: usize,
    process: usize,
}

/// How a lock service hands a free lease to the first in its queue. Any wake-up may be late, lost
/// or repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waking {
    /// With an offer, as Redis does.
    Offers,
    /// With the lease, as the service in memory does.
    Grants,
    /// With a hint, as PostgreSQL does. One task looks for all waiters of a process.
    Hints,
}

/// Something that may happen, besides requests, wake-ups, releases and time. There is one accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum May {
    /// Callers go away, give up, or see the manager shut down.
    Leave,
    /// Attempts begin without a channel for wake-ups.
    BeDeaf,
    /// Time goes by before a request is run. Otherwise each such request counts as a fault.
    RunLate,
    /// An answer is late, and not only its request.
    AnswerLate,
    /// A push arrives after its attempt has stopped waiting.
    PushLate,
    /// The channel of a process breaks. That is an accident.
    Cut,
    /// A process dies while it waits. That is an accident.
    Die,
    /// A waiter does nothing any more, but its process goes on looking for it. That is an accident.
    Idle,
    /// Holders renew.
    Renew,
    /// The database crashes. That is an accident.
    Crash,
    /// A standby takes the place of the database. That is an accident.
    Promote,
    /// Holders have transactions in a store that is in the same database.
    Transact,
}

/// The model: the callers, the lock service, the faults, and the rule that is left out.
#[derive(Clone, Debug)]
pub(crate) struct Machines {
    callers: &'static [Caller],
    waking: Waking,
    /// Requests that are lost, refused or repeated, and silences of the common task.
    faults: u8,
    may: &'static [May],
    flaw: Option<Flaw>,
}

flawed!(Machines);

impl Model for Machines {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
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
        self.expectations()
    }
}
