//! The cohort: a process has one place in the queue and one lease for all its local waiters, and
//! passes the lock on between them without asking the server.
//!
//! The queue is left out: whoever asks while the lease is free gets it. Requests and answers arrive
//! in any order, or never; a request may arrive twice. At any time a lease may run out, an operator
//! may end it by force, or a waiter may leave the line.

mod actions;
mod flaw;
mod process;
mod properties;
mod server;
mod state;
mod tests;

use stateright::{Model, Property};

pub(crate) use self::{actions::Action, flaw::Flaw, state::State};

/// A local waiter or holder, by its number.
pub(crate) type Task = usize;
/// A client process, by its number.
pub(crate) type Process = usize;
/// A shared lease nonce: one lease of one process.
pub(crate) type LeaseId = usize;
/// A fencing token.
pub(crate) type Token = u8;

/// The tasks of the first process, the cohort. The last task is the only one of the second.
pub(crate) const LOCAL: usize = 3;
pub(crate) const TASKS: usize = LOCAL + 1;
pub(crate) const PROCESSES: usize = 2;

/// The model: how many faults may happen, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Cohort {
    /// The greatest number of tokens that a grant reserves.
    pub(crate) reserve: u8,
    /// How many leases may run out.
    pub(crate) expiries: u8,
    /// How many times an operator ends a lease by force.
    pub(crate) forced: u8,
    /// How many requests arrive twice.
    pub(crate) duplicates: u8,
    /// How many waiters leave the line.
    pub(crate) leaves: u8,
    pub(crate) flaw: Option<Flaw>,
}

flawed!(Cohort);

impl Cohort {
    /// An operator ends a lease by force, and a request arrives twice.
    pub(crate) const fn revoked() -> Self {
        Self {
            forced: 1,
            duplicates: 1,
            ..Self::UNDISTURBED
        }
    }

    /// A lease runs out, and a request arrives twice.
    pub(crate) const fn slow() -> Self {
        Self {
            expiries: 1,
            duplicates: 1,
            ..Self::UNDISTURBED
        }
    }

    /// An operator ends a lease by force, and a waiter leaves the line.
    pub(crate) const fn shrinking() -> Self {
        Self {
            forced: 1,
            leaves: 1,
            ..Self::UNDISTURBED
        }
    }

    const UNDISTURBED: Self = Self {
        reserve: 3,
        expiries: 0,
        forced: 0,
        duplicates: 0,
        leaves: 0,
        flaw: None,
    };
}

/// The process that a task belongs to.
pub(crate) const fn process_of(task: Task) -> Process {
    if task < LOCAL { 0 } else { 1 }
}

impl Model for Cohort {
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
        self.perform(&mut state, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.expectations()
    }
}
