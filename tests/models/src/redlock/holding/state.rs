use super::ATTEMPTS;
use crate::{set::Set, unseen::Unseen};

/// The whole state at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State<const N: usize> {
    pub(crate) nodes: [Node; N],
    pub(crate) attempts: [Phase; ATTEMPTS],
    pub(crate) jumps: u8,
    pub(crate) losses: u8,
    /// A request has ended or extended the lease of another attempt.
    pub(crate) stranger_touched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Node {
    pub(crate) lease: Option<Lease>,
    /// The node has lost its state, and grants nothing until the lease that it forgot has run out.
    pub(crate) is_silent: bool,
    /// The attempts whose requests are under way.
    pub(crate) acquires: Set,
    pub(crate) undos: Set,
    pub(crate) renewals: Set,
    /// The attempts that were granted, and the attempts that were renewed.
    pub(crate) granted: Set,
    pub(crate) renewed: Set,
    pub(crate) name: Unseen<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Lease {
    pub(crate) attempt: usize,
    /// The lease lasts for this term: 0, or 1 if it was renewed.
    pub(crate) term: u8,
}

/// How far an attempt has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    /// The attempt has sent its acquires.
    Asking,
    /// The attempt believes that it holds the lock for its first term, and may have asked for a
    /// second term.
    FirstTerm {
        renews: bool,
    },
    /// The lock was renewed. `first_is_over` is about the leases that were not renewed.
    SecondTerm {
        first_is_over: bool,
    },
    /// The attempt was given up or released, or its time is over.
    Ended,
}

impl<const N: usize> State<N> {
    pub(crate) fn new(asking: &[usize]) -> Self {
        let asking: Set = asking.iter().copied().collect();
        let node = |name| Node {
            lease: None,
            is_silent: false,
            acquires: asking,
            undos: Set::EMPTY,
            renewals: Set::EMPTY,
            granted: Set::EMPTY,
            renewed: Set::EMPTY,
            name: Unseen(name),
        };
        Self {
            nodes: std::array::from_fn(node),
            attempts: std::array::from_fn(|attempt| {
                if asking.contains(attempt) {
                    Phase::Asking
                } else {
                    Phase::Idle
                }
            }),
            jumps: 0,
            losses: 0,
            stranger_touched: false,
        }
    }

    /// The node of this name.
    pub(crate) fn node(&mut self, name: usize) -> &mut Node {
        let mut nodes = self.nodes.iter_mut();
        let node = nodes.find(|node| node.name.0 == name);
        node.unwrap_or_else(|| panic!("no node is called {name}"))
    }
}

impl Phase {
    pub(crate) const fn believes(self) -> bool {
        matches!(self, Self::FirstTerm { .. } | Self::SecondTerm { .. })
    }

    /// Whether a lease of this term may run out by now.
    pub(crate) const fn is_over(self, term: u8) -> bool {
        match self {
            Self::Ended => true,
            Self::SecondTerm { first_is_over } => first_is_over && term == 0,
            Self::Idle | Self::Asking | Self::FirstTerm { .. } => false,
        }
    }
}
