//! Whether two clients can hold the lock at once. Here leases end on time, because otherwise two
//! clients certainly can.
//!
//! Time is counted in terms. The first term of an attempt runs from before it sent its acquires,
//! the second from before it sent its renewals. An attempt sees by its own clock when a term is
//! over, and no node ends a lease before that. Requests arrive late, in any order, or never.
//! Counters and raises are left out: they only refuse more.

mod actions;
mod node;
mod properties;
mod state;
mod tests;

use stateright::{Model, Property};

pub(crate) use self::{actions::Action, state::State};

/// The greatest number of attempts. The first two belong to one client, one after the other.
pub(crate) const ATTEMPTS: usize = 3;

/// The attempt that begins only when the first was given up.
pub(crate) const RETRY: usize = 1;

/// One rule is left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Another attempt of the same acquisition has the same nonce.
    NonceIsReused,
    /// An undo ends any lease that it finds.
    UndoIsNotCompared,
    /// A renewal extends any lease that it finds.
    RenewIsNotCompared,
    /// One node less than a majority is enough to acquire.
    MinorityAcquires,
    /// One node less than a majority is enough to renew.
    MinorityRenews,
    /// An attempt counts its time from the answers.
    TimeFromAnswer,
    /// A node that lost its state grants leases at once.
    LostServesAtOnce,
    /// A node may be brought into service while it has to be silent.
    HealedWhileQuiet,
}

/// The model: how many faults may happen, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Holding<const N: usize> {
    pub(crate) attempts: &'static [usize],
    /// How many times the clock of a node jumps ahead.
    pub(crate) jumps: u8,
    /// How many times a node loses its state.
    pub(crate) losses: u8,
    pub(crate) flaw: Option<Flaw>,
}

flawed!(Holding<N>, const N: usize);

impl<const N: usize> Holding<N> {
    /// Two rivals.
    pub(crate) const fn duel() -> Self {
        Self {
            attempts: &[0, 2],
            jumps: 0,
            losses: 0,
            flaw: None,
        }
    }

    /// Two rivals, one of which may try again.
    pub(crate) const fn retry() -> Self {
        Self {
            attempts: &[0, RETRY, 2],
            ..Self::duel()
        }
    }

    /// How many nodes are enough.
    pub(crate) fn enough(&self, unless: Flaw) -> usize {
        N / 2 + 1 - usize::from(self.is(unless))
    }

    /// Whether a node takes two attempts for the same one.
    pub(crate) fn share_nonce(&self, one: usize, other: usize) -> bool {
        let reused = self.is(Flaw::NonceIsReused) && one <= RETRY && other <= RETRY;
        one == other || reused
    }
}

impl<const N: usize> Model for Holding<N> {
    type State = State<N>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        let first = self.attempts.iter().copied();
        let first: Vec<_> = first.filter(|attempt| *attempt != RETRY).collect();
        vec![State::new(&first)]
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, last: &Self::State, action: Action) -> Option<Self::State> {
        let mut state = last.clone();
        self.perform(&mut state, action);
        self.forget(&mut state);
        // Nodes are alike.
        state.nodes.sort_unstable();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.expectations()
    }
}
