//! How nodes come into service. A node without state is either new or has lost its state, and
//! cannot tell which: it must never begin at the base again.
//!
//! Provisioning takes three rounds. *Prepare* gives an empty node a number that the node draws
//! itself. When all nodes have answered, and none of them serves, all of them are *looked* at
//! again. If still none serves, *commit* makes each node that still has its number begin. Requests
//! arrive late, in any order, or never; a prepare may arrive twice.
//!
//! A node may begin twice if it had no part in any token before: no token is returned before a
//! majority serves.

mod tests;

use stateright::{Model, Property};

use crate::set::Set;

/// How many nodes there are.
const NODES: usize = 3;
/// How many clients provision at the same time.
const CLIENTS: usize = 2;

/// One rule of provisioning is left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// There is only one round: an empty node begins when all nodes have answered that they are
    /// empty.
    OneRound,
    /// A commit names no number: it applies to any node that was prepared.
    CommitNamesNoNumber,
    /// Nodes are not looked at again.
    NoSecondLook,
}

/// The model: how many nodes lose their state, how many prepares arrive twice, and which rule is
/// left out.
#[derive(Clone, Debug)]
pub(crate) struct Provision {
    losses: u8,
    resent: u8,
    flaw: Option<Flaw>,
}

flawed!(Provision);

/// The whole state at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    nodes: [Node; NODES],
    clients: [Client; CLIENTS],
    /// The numbers that nodes have drawn.
    drawn: u8,
    losses: u8,
    resent: u8,
    began_again: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    marker: Marker,
    /// The node has served before, which only the observer can know.
    has_served: bool,
    /// The node has served when a majority served, so it may have had a part in a token.
    had_part: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Marker {
    #[default]
    Nothing,
    Prepared(u8),
    Serves,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Client {
    /// The answer of each node to the prepare.
    answers: [Option<Marker>; NODES],
    /// The nodes that the client has looked at again.
    looked: Set,
    /// Some nodes serve already, so another command has to deal with the others.
    stopped: bool,
    /// The nodes at which its commit has arrived.
    committed: Set,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A client's prepare arrives at a node, and is answered.
    Prepare(usize, usize),
    /// A prepare arrives again.
    PrepareAgain(usize, usize),
    /// A client that has prepared all nodes looks at one node.
    Look(usize, usize),
    /// A client's commit arrives at a node.
    Commit(usize, usize),
    /// A node loses its state.
    Lose(usize),
}

impl Provision {
    /// A node loses its state, and a prepare arrives twice.
    pub(crate) const fn two_at_once() -> Self {
        Self {
            losses: 1,
            resent: 1,
            flaw: None,
        }
    }

    fn prepare(&self, state: &mut State, node: usize) -> Marker {
        let marker = &mut state.nodes[node].marker;
        if *marker == Marker::Nothing && !self.is(Flaw::OneRound) {
            *marker = Marker::Prepared(state.drawn);
            state.drawn += 1;
        }
        *marker
    }

    fn commit(&self, state: &mut State, client: usize, node: usize) {
        state.clients[client].committed.insert(node);
        let told = state.clients[client].answers[node];
        let node = &mut state.nodes[node];
        let begins = match node.marker {
            Marker::Serves => false,
            Marker::Prepared(_) if self.is(Flaw::CommitNamesNoNumber) => true,
            marker => told == Some(marker),
        };
        if begins {
            state.began_again |= node.had_part;
            node.marker = Marker::Serves;
            node.has_served = true;
        }
        let served = state.nodes.iter().filter(|node| node.has_served).count();
        if served > NODES / 2 {
            let serving = |node: &&mut Node| node.marker == Marker::Serves;
            let serving = state.nodes.iter_mut().filter(serving);
            serving.for_each(|node| node.had_part = true);
        }
    }
}

impl Client {
    fn hears(&mut self, node: usize, marker: Marker) {
        self.answers[node] = Some(marker);
        self.stops_if(marker == Marker::Serves);
    }

    /// The client stops, and leaves everything as it is.
    fn stops_if(&mut self, others_serve: bool) {
        if others_serve {
            *self = Self {
                stopped: true,
                ..Self::default()
            };
        }
    }
}

impl Model for Provision {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for node in 0..NODES {
            for (index, client) in state.clients.iter().enumerate() {
                if client.answers[node].is_none() && !client.stopped {
                    actions.push(Action::Prepare(index, node));
                } else if state.resent < self.resent {
                    actions.push(Action::PrepareAgain(index, node));
                }
                if client.stopped {
                    continue;
                }
                let all_prepared = client.answers.iter().all(Option::is_some);
                let looks = !self.is(Flaw::NoSecondLook) && !self.is(Flaw::OneRound);
                let all_looked = !looks || client.looked == Set::all_below(NODES);
                if all_prepared && looks && !client.looked.contains(node) {
                    actions.push(Action::Look(index, node));
                }
                if all_prepared && all_looked && !client.committed.contains(node) {
                    actions.push(Action::Commit(index, node));
                }
            }
            if state.nodes[node].marker != Marker::Nothing && state.losses < self.losses {
                actions.push(Action::Lose(node));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Prepare(client, node) => {
                let marker = self.prepare(&mut state, node);
                state.clients[client].hears(node, marker);
            }
            Action::PrepareAgain(_, node) => {
                state.resent += 1;
                self.prepare(&mut state, node);
            }
            Action::Look(client, node) => {
                let marker = state.nodes[node].marker;
                state.clients[client].looked.insert(node);
                state.clients[client].stops_if(marker == Marker::Serves);
            }
            Action::Commit(client, node) => self.commit(&mut state, client, node),
            Action::Lose(node) => {
                state.losses += 1;
                state.nodes[node].marker = Marker::Nothing;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no second beginning", |_, state: &State| !state.began_again),
            Property::sometimes("all serve, and somebody has stopped", |_, state: &State| {
                let all_serve = state.nodes.iter().all(|node| node.marker == Marker::Serves);
                all_serve && state.clients.iter().any(|client| client.stopped)
            }),
        ]
    }
}
