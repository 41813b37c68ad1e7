//! The fair queue with direct grant: one resource on a Redis that does not lose its data.
//!
//! Scripts are atomic. Everything else may happen at any time: a lease runs out, a caller gives up,
//! a message is slow, a push or an answer is lost, a connection breaks and its requests arrive
//! after all, much later or never. A paused client is one that does nothing, which every client may
//! do at any time.

mod actions;
mod client;
mod flaw;
mod granting;
mod heal;
mod messages;
mod properties;
mod scenario;
mod scripts;
mod server;
mod state;
mod tests;
mod watch;

use std::ops::Range;

use stateright::{Model, Property};

pub(crate) use self::{actions::Action, flaw::Flaw, state::State};
use self::{scenario::Plan, watch::Note};

/// An attempt to acquire, by its number.
pub(crate) type Attempt = usize;
/// The attempts that a scenario may have.
pub(crate) const MOST_ATTEMPTS: usize = 4;
/// A client process, by its number.
pub(crate) type Client = usize;
/// A fencing token.
pub(crate) type Token = u8;

/// The model: who wants what, how many faults may happen, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    pub(crate) attempts: Vec<Plan>,
    /// Attempts that differ in nothing but their numbers.
    pub(crate) alike: Range<Attempt>,
    /// An attempt that has the lease from the beginning.
    pub(crate) holder: Option<Attempt>,
    /// How many connections may break.
    pub(crate) cuts: u8,
    /// How many leases may run out.
    pub(crate) expiries: u8,
    /// Whether a client kills its old connection before it uses a new one.
    pub(crate) kills: bool,
    /// Whether a push may arrive after its client has learned of the grant otherwise.
    pub(crate) late_pushes: bool,
    /// Steps that must be possible.
    pub(crate) shows: &'static [Note],
    pub(crate) flaw: Option<Flaw>,
}

flawed!(Queue);

impl Model for Queue {
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
        state.watch.note = None;
        self.perform(&mut state, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.expectations()
    }
}
