//! The actions that are possible, and their effects.

use super::{
    Flaw, HEALINGS, Tokens,
    state::{Phase, Site, Slot, State, small},
};
use crate::set::Set;

/// One step. Attempts and nodes keep the names that they had in the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A node grants an acquire. An attempt begins with its first grant.
    Grant { attempt: u8, node: u8, of_new: bool },
    /// An acquire arrives again. The attempt may or may not receive the answer to this copy.
    GrantAgain { attempt: u8, node: u8, heard: bool },
    /// An attempt fixes which nodes count and asks them for a raise, and this node is raised.
    FixAndRaise { attempt: u8, counted: Set, node: u8 },
    /// A node is raised.
    Raise { attempt: u8, node: u8 },
    /// An attempt returns the count that these nodes granted, without a raise.
    Return { attempt: u8, counted: Set },
    /// A node loses its state, and is taken in again.
    Lose { node: u8 },
    /// A node that lost its state starts at its base.
    Restart { node: u8 },
    /// The old node is taken out of service.
    Retire { node: u8 },
    /// A healer begins to rebuild the counter of a node: it counts up another node, and reads it.
    Heal {
        healing: usize,
        patient: u8,
        node: u8,
    },
    /// The healer counts up one more node, and reads it.
    Read { healing: usize, node: u8 },
    /// The value that the healer has read arrives at the node to be healed. If the healer did not
    /// list counters, the node serves from then on.
    Seed { healing: usize, node: u8 },
    /// A healer begins to rebuild all counters of a node: it lists the counters of another node.
    HealByList {
        healing: usize,
        patient: u8,
        node: u8,
    },
    /// The healer lists the counters of one more node.
    List { healing: usize, node: u8 },
    /// The healer has rebuilt all counters, and the node serves.
    Serve { healing: usize, node: u8 },
}

impl<const N: usize> Tokens<N> {
    /// All actions that are possible in a state.
    pub(crate) fn possible(&self, state: &State<N>, actions: &mut Vec<Action>) {
        if !self.somebody_may_return(state) {
            return;
        }
        for attempt in 0..self.attempts {
            self.possible_for(state, attempt, actions);
        }
        for (index, node) in state.nodes.iter().enumerate() {
            let name = node.name.0;
            let may_lose = node.serves || node.counter.is_some();
            if may_lose && node.site != Site::Retired && state.losses_left > 0 {
                actions.push(Action::Lose { node: name });
            }
            if node.site == Site::Old {
                actions.push(Action::Retire { node: name });
            }
            if self.may_restart(state, index) {
                actions.push(Action::Restart { node: name });
            }
        }
        for healing in 0..HEALINGS {
            self.possible_for_healing(state, healing, actions);
        }
    }

    fn possible_for(&self, state: &State<N>, index: usize, actions: &mut Vec<Action>) {
        let this = state.attempts[index];
        let attempt = this.name.0;
        if this.phase == Phase::Idle {
            // Attempts that have not begun are alike: the first of them begins.
            if index == 0 || state.attempts[index - 1].phase != Phase::Idle {
                self.possible_beginnings(state, attempt, actions);
            }
            return;
        }
        for node in &state.nodes {
            let name = node.name.0;
            if !node.serves || !this.knows(node) {
                continue;
            }
            let slot = node.slots[index];
            if slot == Slot::Asked {
                let of_new = this.is_new;
                actions.push(Action::Grant {
                    attempt,
                    node: name,
                    of_new,
                });
            } else if state.resent_left > 0 {
                let collecting = matches!(this.phase, Phase::Collecting { .. });
                actions.push(Action::GrantAgain {
                    attempt,
                    node: name,
                    heard: false,
                });
                if collecting {
                    actions.push(Action::GrantAgain {
                        attempt,
                        node: name,
                        heard: true,
                    });
                }
            }
            if self.would_raise(state, index, node) {
                actions.push(Action::Raise {
                    attempt,
                    node: name,
                });
            }
        }
        if matches!(this.phase, Phase::Collecting { .. }) {
            self.possible_fixings(state, index, actions);
        }
    }

    /// The first grant of an attempt. Everything that was returned before the attempt sent its
    /// acquire was also returned before this grant.
    fn possible_beginnings(&self, state: &State<N>, attempt: u8, actions: &mut Vec<Action>) {
        for of_new in [false, true] {
            // Clients get the new node when the old node is out of service.
            let retired = state.nodes.iter().all(|node| node.site != Site::Old);
            if of_new && !(self.replaces && (retired || self.is(Flaw::OldNodeServesOn))) {
                continue;
            }
            for node in state.nodes.iter().filter(|node| node.serves) {
                let known = match node.site {
                    Site::Common => true,
                    Site::Old => !of_new,
                    Site::New => of_new,
                    Site::Retired => false,
                };
                if known {
                    let node = node.name.0;
                    actions.push(Action::Grant {
                        attempt,
                        node,
                        of_new,
                    });
                }
            }
        }
    }

    /// Any majority of the nodes that granted may be counted: answers come in any order.
    fn possible_fixings(&self, state: &State<N>, index: usize, actions: &mut Vec<Action>) {
        let attempt = state.attempts[index].name.0;
        let granted = |node: usize| state.nodes[node].slots[index].granted().is_some();
        for mask in 1_usize..1 << N {
            let members = (0..N).filter(|node| mask & 1 << node != 0);
            if members.clone().count() < self.majority() || !members.clone().all(granted) {
                continue;
            }
            let counted = members
                .clone()
                .map(|node| usize::from(state.nodes[node].name.0));
            let counted: Set = counted.collect();
            if self.returns_at_once(state, index, members.clone()) {
                actions.push(Action::Return { attempt, counted });
                continue;
            }
            for node in members {
                if self.raises(&state.nodes[node], index) {
                    let node = state.nodes[node].name.0;
                    actions.push(Action::FixAndRaise {
                        attempt,
                        counted,
                        node,
                    });
                }
            }
        }
    }

    /// Takes one step.
    pub(crate) fn perform(&self, state: &mut State<N>, action: Action) {
        match action {
            Action::Grant {
                attempt,
                node,
                of_new,
            } => {
                let (attempt, node) = (state.attempt(attempt), state.node(node));
                self.grant(state, attempt, node, of_new);
            }
            Action::GrantAgain {
                attempt,
                node,
                heard,
            } => {
                let (attempt, node) = (state.attempt(attempt), state.node(node));
                self.grant_again(state, attempt, node, heard);
            }
            Action::FixAndRaise {
                attempt,
                counted,
                node,
            } => {
                let (attempt, node) = (state.attempt(attempt), state.node(node));
                self.fix(state, attempt, counted);
                self.raise(state, attempt, node);
            }
            Action::Raise { attempt, node } => {
                let (attempt, node) = (state.attempt(attempt), state.node(node));
                self.raise(state, attempt, node);
            }
            Action::Return { attempt, counted } => {
                let attempt = state.attempt(attempt);
                self.fix(state, attempt, counted);
                self.finish(state, attempt);
            }
            Action::Lose { node } => {
                let node = state.node(node);
                self.lose(state, node);
            }
            Action::Restart { node } => {
                let node = state.node(node);
                self.restart(state, node);
            }
            Action::Retire { node } => {
                let node = state.node(node);
                state.nodes[node].site = Site::Retired;
            }
            healing => self.perform_healing(state, healing),
        }
    }

    fn perform_healing(&self, state: &mut State<N>, action: Action) {
        match action {
            Action::Heal {
                healing,
                patient,
                node,
            } => {
                let (patient, node) = (state.node(patient), state.node(node));
                state.healings[healing].began = true;
                state.nodes[patient].healed_by.insert(healing);
                self.read(state, healing, node);
            }
            Action::Read { healing, node } => {
                let node = state.node(node);
                self.read(state, healing, node);
            }
            Action::Seed { healing, node } => {
                let node = state.node(node);
                self.seed(state, healing, node);
            }
            Action::HealByList {
                healing,
                patient,
                node,
            } => {
                let (patient, node) = (state.node(patient), state.node(node));
                state.healings[healing].began = true;
                state.healings[healing].lists = true;
                state.nodes[patient].healed_by.insert(healing);
                state.list(healing, node);
            }
            Action::List { healing, node } => {
                let node = state.node(node);
                state.list(healing, node);
            }
            Action::Serve { healing, node } => {
                let node = state.node(node);
                state.nodes[node].serves = true;
                state.drop_healing(healing);
            }
            other => unreachable!("{other:?} heals nothing"),
        }
    }
}

/// The members of a set of names, as positions.
pub(crate) fn positions<const N: usize>(state: &State<N>, names: Set) -> Set {
    names
        .members()
        .map(|name| state.node(small(name)))
        .collect()
}
