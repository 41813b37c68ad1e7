//! The actions that are possible, and their effects.

use super::{
    ATTEMPTS, Flaw, Holding, RETRY,
    state::{Node, Phase, State},
};

/// One step of an attempt, or at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// An acquire arrives at a node, and is granted.
    Grant(usize, usize),
    /// An attempt has enough grants.
    Return(usize),
    /// An attempt sends its undos: it gives up or releases, or its time is over by its own clock.
    End(usize),
    /// The first attempt was given up, and its client tries again.
    Retry,
    /// An undo arrives at a node.
    Undo(usize, usize),
    /// A holder sends its renewals.
    Renew(usize),
    /// A renewal arrives at a node.
    Extend(usize, usize),
    /// A holder has enough answers to its renewals.
    Renewed(usize),
    /// The first term of a holder that has a second one is over, by its own clock.
    FirstTermEnds(usize),
    /// A lease runs out.
    Expire(usize),
    /// The clock of a node jumps ahead, and its lease runs out too early.
    Jump(usize),
    /// A node loses its state.
    Lose(usize),
    /// A node that was healed serves.
    Serve(usize),
}

impl<const N: usize> Holding<N> {
    /// Everything that may happen in a state.
    pub(crate) fn possible(&self, state: &State<N>, actions: &mut Vec<Action>) {
        for attempt in self.attempts {
            self.possible_for(state, *attempt, actions);
        }
        for node in &state.nodes {
            let name = node.name.0;
            self.possible_at(node, actions);
            let Some(lease) = node.lease else { continue };
            let early = self.is(Flaw::TimeFromAnswer);
            if early || state.attempts[lease.attempt].is_over(lease.term) {
                actions.push(Action::Expire(name));
            }
            if state.jumps < self.jumps {
                actions.push(Action::Jump(name));
            }
            if state.losses < self.losses && !node.is_silent {
                actions.push(Action::Lose(name));
            }
            if node.is_silent && self.is(Flaw::HealedWhileQuiet) {
                actions.push(Action::Serve(name));
            }
        }
    }

    fn possible_for(&self, state: &State<N>, attempt: usize, actions: &mut Vec<Action>) {
        let count = |has: fn(&Node, usize) -> bool| {
            state.nodes.iter().filter(|node| has(node, attempt)).count()
        };
        let this = state.attempts[attempt];
        match this {
            Phase::Asking => {
                let granted = count(|node, attempt| node.granted.contains(attempt));
                if granted >= self.enough(Flaw::MinorityAcquires) {
                    actions.push(Action::Return(attempt));
                }
            }
            Phase::FirstTerm { renews: false } => actions.push(Action::Renew(attempt)),
            Phase::FirstTerm { renews: true } => {
                let renewed = count(|node, attempt| node.renewed.contains(attempt));
                if renewed >= self.enough(Flaw::MinorityRenews) {
                    actions.push(Action::Renewed(attempt));
                }
            }
            Phase::SecondTerm {
                first_is_over: false,
            } => {
                actions.push(Action::FirstTermEnds(attempt));
            }
            Phase::Idle if attempt == RETRY && state.attempts[0] == Phase::Ended => {
                actions.push(Action::Retry);
            }
            _ => {}
        }
        if this == Phase::Asking || this.believes() {
            actions.push(Action::End(attempt));
        }
    }

    fn possible_at(&self, node: &Node, actions: &mut Vec<Action>) {
        if node.is_silent {
            return;
        }
        let name = node.name.0;
        for attempt in 0..ATTEMPTS {
            let free = node
                .lease
                .is_none_or(|lease| self.share_nonce(lease.attempt, attempt));
            if node.acquires.contains(attempt) && free {
                actions.push(Action::Grant(attempt, name));
            }
            if node.undos.contains(attempt) {
                actions.push(Action::Undo(attempt, name));
            }
            if node.renewals.contains(attempt) {
                actions.push(Action::Extend(attempt, name));
            }
        }
    }

    /// Takes one step.
    pub(crate) fn perform(&self, state: &mut State<N>, action: Action) {
        match action {
            Action::Grant(attempt, node) => state.node(node).grant(attempt),
            Action::Return(attempt) => {
                state.attempts[attempt] = Phase::FirstTerm { renews: false };
            }
            Action::End(attempt) => {
                state.attempts[attempt] = Phase::Ended;
                state
                    .nodes
                    .iter_mut()
                    .for_each(|node| node.undos.insert(attempt));
            }
            Action::Retry => {
                state.attempts[RETRY] = Phase::Asking;
                state
                    .nodes
                    .iter_mut()
                    .for_each(|node| node.acquires.insert(RETRY));
            }
            Action::Undo(attempt, node) => self.undo(state, attempt, node),
            Action::Renew(attempt) => {
                state.attempts[attempt] = Phase::FirstTerm { renews: true };
                state
                    .nodes
                    .iter_mut()
                    .for_each(|node| node.renewals.insert(attempt));
            }
            Action::Extend(attempt, node) => self.extend(state, attempt, node),
            Action::Renewed(attempt) => {
                let first_is_over = false;
                state.attempts[attempt] = Phase::SecondTerm { first_is_over };
            }
            Action::FirstTermEnds(attempt) => {
                let first_is_over = true;
                state.attempts[attempt] = Phase::SecondTerm { first_is_over };
            }
            Action::Expire(node) => state.node(node).end(),
            Action::Serve(node) => state.node(node).end(),
            Action::Jump(node) => {
                state.jumps += 1;
                state.node(node).end();
            }
            Action::Lose(node) => {
                state.losses += 1;
                let at_once = self.is(Flaw::LostServesAtOnce);
                let node = state.node(node);
                if at_once {
                    node.end();
                } else {
                    node.is_silent = true;
                }
            }
        }
    }
}
