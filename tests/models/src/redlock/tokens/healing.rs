//! Nodes that lose their state, and how their counters are rebuilt.

use super::{
    Action, Flaw, Tokens,
    state::{Healing, Node, Phase, Site, Slot, State},
};

impl<const N: usize> Tokens<N> {
    pub(crate) fn lose(&self, state: &mut State<N>, node: usize) {
        state.losses_left -= 1;
        let node = &mut state.nodes[node];
        node.counter = None;
        node.holder = None;
        node.serves = false;
        if !self.is(Flaw::RaiseNamesNoLoss) {
            for slot in &mut node.slots {
                *slot = match *slot {
                    Slot::Granted(count) => Slot::GrantedBefore(count),
                    Slot::Raising(_) => Slot::Nothing,
                    other => other,
                };
            }
        }
        let healed_by = std::mem::take(&mut node.healed_by);
        if self.is(Flaw::SeedNamesNoLoss) || self.is(Flaw::HealingNamesNoLife) {
            node.outdated.include(healed_by);
        }
    }

    /// Whether a node that lost its state may start as if it were new.
    pub(crate) fn may_restart(&self, state: &State<N>, node: usize) -> bool {
        let ended = |phase| matches!(phase, Phase::Settled { .. } | Phase::Over | Phase::Idle);
        let all_ended = state.attempts.iter().all(|attempt| ended(attempt.phase));
        let allowed = match self.flaw {
            Some(Flaw::LostStartsAtBase) => true,
            Some(Flaw::DelayedRestart) => all_ended,
            _ => false,
        };
        allowed && state.nodes[node].counter.is_none()
    }

    pub(crate) fn restart(&self, state: &mut State<N>, node: usize) {
        state.nodes[node].counter = Some(0);
        state.nodes[node].serves = true;
        if self.is(Flaw::DelayedRestart) {
            // The restart took so long that every lease has ended and nothing is under way.
            for node in &mut state.nodes {
                node.slots.fill(Slot::Nothing);
                node.holder = None;
            }
        }
    }

    pub(crate) fn possible_for_healing(
        &self,
        state: &State<N>,
        healing: usize,
        actions: &mut Vec<Action>,
    ) {
        let may_be_read = |node: &&Node| {
            let is_asked = matches!(node.site, Site::Common | Site::New);
            node.serves && is_asked && !node.read_by.contains(healing)
        };
        let readable = || {
            state
                .nodes
                .iter()
                .filter(may_be_read)
                .map(|node| node.name.0)
        };
        if !state.healings[healing].began {
            let is_next = healing == 0 || state.healings[healing - 1].began;
            // A new node is not healed before the old node is out of service.
            let retired = state.nodes.iter().all(|node| node.site != Site::Old);
            let in_order = retired || self.is(Flaw::OldNodeServesOn);
            let may_heal = |node: &&Node| !node.serves && (node.site != Site::New || in_order);
            if is_next && healing < self.healings && self.lists {
                self.possible_by_list(state, healing, actions);
            } else if is_next && healing < self.healings {
                for patient in state.nodes.iter().filter(may_heal) {
                    let patient = patient.name.0;
                    let heal = |node| Action::Heal {
                        healing,
                        patient,
                        node,
                    };
                    actions.extend(readable().map(heal));
                }
            }
            return;
        }
        if state.healings[healing].lists && !self.all_is_listed(state, healing, actions) {
            return;
        }
        let Some(patient) = state.nodes.iter().find(|node| node.is_patient_of(healing)) else {
            return;
        };
        let node = patient.name.0;
        let read = |other: &&Node| other.name.0 != node && other.read_by.contains(healing);
        let wanted = self.majority() - usize::from(self.is(Flaw::HealingReadsTooFew));
        if state.healings[healing].lists {
            let seeds = state.healings[healing].found && !self.is(Flaw::HealingSeedsNothing);
            let is_late = !patient.healed_by.contains(healing);
            if is_late || patient.counter.is_some() || !seeds {
                actions.push(Action::Serve { healing, node });
                return;
            }
        }
        if state.nodes.iter().filter(read).count() < wanted {
            let others = readable().filter(|other| *other != node);
            actions.extend(others.map(|node| Action::Read { healing, node }));
        } else if !patient.serves || self.is(Flaw::SeedReplaces) {
            actions.push(Action::Seed { healing, node });
        }
    }

    /// Counts the node up, which also refuses the raises that are under way to it.
    pub(crate) fn read(&self, state: &mut State<N>, healing: usize, node: usize) {
        let node = &mut state.nodes[node];
        node.read_by.insert(healing);
        let counted = u8::from(!self.is(Flaw::HealingOnlyReads));
        let counter = node.counter.unwrap_or_default() + counted;
        node.counter = Some(counter);
        let most = &mut state.healings[healing].most;
        *most = std::cmp::max(*most, counter);
    }

    /// Creates the counter, if there is none.
    pub(crate) fn seed(&self, state: &mut State<N>, healing: usize, node: usize) {
        state.nodes[node].counter = Some(state.healings[healing].most);
        state.nodes[node].holder = None;
        if !state.healings[healing].lists {
            state.nodes[node].serves = true;
            state.drop_healing(healing);
        }
    }

    /// Any node that lost its state may be healed.
    fn possible_by_list(&self, state: &State<N>, healing: usize, actions: &mut Vec<Action>) {
        for patient in state.nodes.iter().filter(|node| !node.serves) {
            let patient = patient.name.0;
            let list = |node| Action::HealByList {
                healing,
                patient,
                node,
            };
            let nodes = self.listable(state, healing);
            actions.extend(nodes.filter(|node| *node != patient).map(list));
        }
    }

    /// Whether enough nodes were listed. If not, adds the actions that list more.
    fn all_is_listed(&self, state: &State<N>, healing: usize, actions: &mut Vec<Action>) -> bool {
        let patient = |node: &&Node| node.is_patient_of(healing);
        let patient = state.nodes.iter().find(patient).map(|node| node.name.0);
        let listed = |node: &&Node| node.listed_by.contains(healing);
        let wanted = self.majority() - usize::from(self.is(Flaw::HealingListsTooFew));
        if state.nodes.iter().filter(listed).count() >= wanted {
            return true;
        }
        let nodes = self.listable(state, healing);
        let nodes = nodes.filter(|node| Some(*node) != patient);
        actions.extend(nodes.map(|node| Action::List { healing, node }));
        false
    }

    /// The nodes that may be listed: nodes that serve know of every token that they had a part in.
    fn listable(&self, state: &State<N>, healing: usize) -> impl Iterator<Item = u8> {
        let any = self.is(Flaw::HealingListsAnyNode);
        let may = move |node: &&Node| (node.serves || any) && !node.listed_by.contains(healing);
        state.nodes.iter().filter(may).map(|node| node.name.0)
    }
}

impl Node {
    /// Whether this healing is meant to bring the node back, in time or not.
    pub(crate) fn is_patient_of(&self, healing: usize) -> bool {
        self.healed_by.contains(healing) || self.outdated.contains(healing)
    }
}

impl<const N: usize> State<N> {
    /// A finished healing leaves no trace.
    pub(crate) fn drop_healing(&mut self, healing: usize) {
        let began = self.healings[healing].began;
        self.healings[healing] = Healing {
            began,
            ..Healing::default()
        };
        for node in &mut self.nodes {
            node.healed_by.remove(healing);
            node.outdated.remove(healing);
            node.read_by.remove(healing);
            node.listed_by.remove(healing);
        }
    }

    /// Lists the counters of a node. A counter that is begun meanwhile may be missed.
    pub(crate) fn list(&mut self, healing: usize, node: usize) {
        self.nodes[node].listed_by.insert(healing);
        self.healings[healing].found |= self.nodes[node].counter.is_some();
    }
}
