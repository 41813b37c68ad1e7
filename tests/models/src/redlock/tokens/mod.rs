//! The tokens of Redlock: each node grants a lease and counts up; the greatest count of a majority
//! becomes the token, but only after a majority was raised to it.
//!
//! Requests arrive at any time, in any order, or never. A lease may end at any moment: it runs out,
//! a clock jumps, a late undo arrives. So an acquire may always be granted, and a raise that is
//! refused is the same as one that never arrives. A node may lose its state; then a healer reads
//! a majority of the others and rebuilds its counter.

mod actions;
mod attempt;
mod canonical;
mod flaw;
mod healing;
mod node;
mod properties;
mod scenario;
mod state;
mod tests;

use stateright::{Model, Property};

use self::state::Site;
pub(crate) use self::{actions::Action, flaw::Flaw, state::State};

/// A count of a node, and so a fencing token.
pub(crate) type Token = u8;

/// Attempts that there is room for.
pub(crate) const ATTEMPTS: usize = 3;
/// Healings that there is room for.
pub(crate) const HEALINGS: usize = 2;

/// The model: how many attempts, how many faults, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<const N: usize> {
    pub(crate) attempts: usize,
    /// Counters start at any number from 0 to this one: earlier events have left them uneven.
    pub(crate) uneven: Token,
    /// How many acquires arrive again.
    pub(crate) resent: u8,
    /// How many times a node loses its state.
    pub(crate) losses: u8,
    /// How many times a healer begins to rebuild a counter.
    pub(crate) healings: usize,
    /// The least token that the last attempt asks for.
    pub(crate) at_least: Option<Token>,
    /// One of the nodes takes the place of another.
    pub(crate) replaces: bool,
    /// Counters may be missing in the beginning, and nodes are healed by listing the counters of
    /// others.
    pub(crate) lists: bool,
    /// States keep everything that can no longer matter.
    pub(crate) forgets_nothing: bool,
    pub(crate) flaw: Option<Flaw>,
}

flawed!(Tokens<N>, const N: usize);

impl<const N: usize> Tokens<N> {
    /// How many nodes a client knows.
    pub(crate) const fn known(&self) -> usize {
        if self.replaces { N - 1 } else { N }
    }

    pub(crate) const fn majority(&self) -> usize {
        self.known() / 2 + 1
    }

    /// Whether a node that starts with this count has no counter.
    pub(crate) const fn is_missing(&self, counter: Token) -> bool {
        self.lists && counter == 0
    }

    /// The last node takes the place of the node before it.
    pub(crate) const fn site(&self, name: usize) -> Site {
        match N - name {
            1 if self.replaces => Site::New,
            2 if self.replaces => Site::Old,
            _ => Site::Common,
        }
    }
}

impl<const N: usize> Model for Tokens<N> {
    type State = State<N>;
    type Action = Action;

    fn init_states(&self) -> Vec<Self::State> {
        self.beginnings()
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, last: &Self::State, action: Action) -> Option<Self::State> {
        let mut state = last.clone();
        self.perform(&mut state, action);
        if !self.forgets_nothing {
            self.forget(&mut state);
        }
        state.make_canonical();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.expectations()
    }
}
