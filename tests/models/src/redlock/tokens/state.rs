use super::{ATTEMPTS, HEALINGS, Token, Tokens};
use crate::{set::Set, unseen::Unseen};

/// The whole state at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State<const N: usize> {
    pub(crate) nodes: [Node; N],
    pub(crate) attempts: [Attempt; ATTEMPTS],
    pub(crate) healings: [Healing; HEALINGS],
    pub(crate) resent_left: u8,
    pub(crate) losses_left: u8,
    /// The tokens that were returned.
    pub(crate) returned: Set,
    /// The faults of past returns, as numbers of [`Fault`].
    pub(crate) faults: Set,
}

/// A node, as far as the one resource is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// `None` if no client has asked the node for the resource, or the node lost its state.
    pub(crate) counter: Option<Token>,
    /// The attempt that was granted last. Its lease may have ended.
    pub(crate) holder: Option<u8>,
    /// Which clients know the node.
    pub(crate) site: Site,
    /// The messages under way between each attempt and this node.
    pub(crate) slots: [Slot; ATTEMPTS],
    /// The healings that are to bring this node back.
    pub(crate) healed_by: Set,
    /// Healings of this node that began before it lost its state again.
    pub(crate) outdated: Set,
    /// The healings that have read this node.
    pub(crate) read_by: Set,
    /// The node serves, and a missing counter begins at the base.
    pub(crate) serves: bool,
    /// The healings that have listed the counters of this node.
    pub(crate) listed_by: Set,
    pub(crate) name: Unseen<u8>,
}

/// A node that is being replaced is known to some clients, its successor to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Site {
    Common,
    Old,
    New,
    /// An old node that was taken out of service.
    Retired,
}

/// The messages between one attempt and one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Slot {
    /// No message is under way, or only messages that cannot matter any more.
    Nothing,
    /// The acquire has not arrived.
    Asked,
    /// The node granted this count, and the attempt may still count it in.
    Granted(Token),
    /// The node granted this count, but has lost its state since, and will refuse the raise.
    GrantedBefore(Token),
    /// The node granted this count and was counted in; the raise has not arrived.
    Raising(Token),
}

/// One attempt to get the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Attempt {
    pub(crate) phase: Phase,
    /// Whether the attempt asks the new node and not the old node.
    pub(crate) is_new: bool,
    pub(crate) name: Unseen<u8>,
}

/// How far an attempt has got. Attempts that have not begun come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The attempt waits for grants. `floor` is the greatest token that was returned before it
    /// began.
    Collecting {
        floor: Token,
    },
    /// The nodes that count are fixed, and with them the token.
    Raising {
        token: Token,
        missing: u8,
        out_of_order: bool,
    },
    /// The attempt has returned, or cannot return any more. Raises to `token` may still come in.
    Settled {
        token: Token,
    },
    /// Nothing of the attempt can matter any more, except late acquires.
    Over,
    Idle,
}

/// A healer rebuilds the counter of a node that lost its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Healing {
    pub(crate) began: bool,
    /// The greatest count that the healer has read.
    pub(crate) most: Token,
    /// The healer makes all counters anew that other nodes have. The counter of the resource may or
    /// may not be among them.
    pub(crate) lists: bool,
    /// Some node that was listed has the counter.
    pub(crate) found: bool,
}

/// A return that must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    OutOfOrder,
    Duplicate,
}

impl<const N: usize> State<N> {
    pub(crate) fn new(tokens: &Tokens<N>, counters: [Token; N]) -> Self {
        let mut index = 0;
        let nodes = counters.map(|counter| {
            let name = index;
            index += 1;
            let site = tokens.site(usize::from(name));
            Node {
                counter: (site != Site::New && !tokens.is_missing(counter)).then_some(counter),
                holder: None,
                site,
                slots: [Slot::Nothing; ATTEMPTS],
                healed_by: Set::EMPTY,
                outdated: Set::EMPTY,
                read_by: Set::EMPTY,
                serves: site != Site::New,
                listed_by: Set::EMPTY,
                name: Unseen(name),
            }
        });
        let idle = |name| Attempt {
            phase: Phase::Idle,
            is_new: false,
            name: Unseen(name),
        };
        Self {
            nodes,
            attempts: [idle(0), idle(1), idle(2)],
            healings: Default::default(),
            resent_left: tokens.resent,
            losses_left: tokens.losses,
            returned: Set::EMPTY,
            faults: Set::EMPTY,
        }
    }

    /// The greatest token that was returned.
    pub(crate) fn last_returned(&self) -> Token {
        self.returned.members().last().map_or(0, small)
    }

    pub(crate) fn blame(&mut self, fault: Fault, wrong: bool) {
        if wrong {
            self.faults.insert(fault as usize);
        }
    }

    pub(crate) fn has_seen(&self, fault: Fault) -> bool {
        self.faults.contains(fault as usize)
    }

    /// The present position of the node with this name.
    pub(crate) fn node(&self, name: u8) -> usize {
        let position = self.nodes.iter().position(|node| node.name.0 == name);
        position.unwrap_or_else(|| panic!("no node is called {name}"))
    }

    /// The present position of the attempt with this name.
    pub(crate) fn attempt(&self, name: u8) -> usize {
        let position = self.attempts.iter().position(|one| one.name.0 == name);
        position.unwrap_or_else(|| panic!("no attempt is called {name}"))
    }
}

impl Attempt {
    /// Whether the attempt asks this node.
    pub(crate) fn knows(self, node: &Node) -> bool {
        match node.site {
            Site::Common => true,
            Site::Old => !self.is_new,
            Site::New => self.is_new,
            Site::Retired => false,
        }
    }
}

/// A number that is known to be small.
///
/// # Panics
/// If the number is not small.
pub(crate) fn small(number: usize) -> u8 {
    u8::try_from(number).unwrap_or_else(|_| panic!("{number} is too large for a model"))
}
