//! One lock service that fails over, and a fenced store. The model shows which checks of the store
//! are needed so that no update is lost, and so that the holder of the lease can write.
//!
//! The lock service is one primary with a replica that lags behind. It may fail over to the
//! replica, and the old primary may go on serving. Leases end at any moment. Each acquisition reads
//! the value of one resource and writes it back with its own update added. The store is one
//! linearizable primary.

mod acquisition;
mod actions;
mod properties;
mod rule;
mod state;
mod tests;

use stateright::{Model, Property};

pub(crate) use self::{
    actions::Action,
    rule::{Check, Floor, Read},
    state::State,
};

/// A fencing token.
pub(crate) type Token = u8;

/// Acquisitions that there is room for.
pub(crate) const ACQUISITIONS: usize = 3;

/// The model: what the store checks, how its clients behave, and which faults may happen.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) acquisitions: usize,
    pub(crate) check: Check,
    pub(crate) read: Read,
    /// The token is claimed in the store before acquire returns.
    pub(crate) claims: bool,
    pub(crate) floor: Floor,
    /// How many times an acquisition may ask for a floor.
    pub(crate) floors: u8,
    /// How a holder's own delayed write is detected.
    pub(crate) compares_versions: bool,
    /// A holder that can write because of a floor writes the value that it computed from its
    /// earlier read.
    pub(crate) keeps_read: bool,
    /// The holder id names the process, and all acquisitions are those of one process.
    pub(crate) shares_holder: bool,
    /// The lock service may fail over.
    pub(crate) fails_over: bool,
    /// The old primary goes on serving after the failover.
    pub(crate) splits: bool,
    /// The first write of an acquisition may be late: it is given up, and a second write is
    /// made.
    pub(crate) delays_write: bool,
}

impl Model for Store {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.perform(&mut state, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.expectations()
    }
}
