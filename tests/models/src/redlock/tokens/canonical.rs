//! Makes states equal if no later event can distinguish them.

use super::{
    ATTEMPTS, Flaw, HEALINGS, Tokens,
    state::{Node, Phase, Slot, State, small},
};

/// The ways to order the attempts.
const ORDERS: [[usize; ATTEMPTS]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

impl<const N: usize> Tokens<N> {
    /// Forgets everything that can no longer matter.
    pub(crate) fn forget(&self, state: &mut State<N>) {
        for attempt in 0..ATTEMPTS {
            self.forget_raises(state, attempt);
            self.settle(state, attempt);
        }
        self.forget_holders(state);
        self.forget_healings(state);
        if !self.somebody_may_return(state) {
            state.forget_all();
        }
    }

    /// Whether anything can still go wrong.
    pub(crate) fn somebody_may_return(&self, state: &State<N>) -> bool {
        let may = |phase| matches!(phase, Phase::Idle | Phase::Collecting { .. });
        let may = |phase| may(phase) || matches!(phase, Phase::Raising { .. });
        let attempts = &state.attempts[..self.attempts];
        attempts.iter().any(|attempt| may(attempt.phase))
    }

    /// Forgets raises that will be refused whenever they arrive, or that change nothing.
    fn forget_raises(&self, state: &mut State<N>, attempt: usize) {
        let settled = match state.attempts[attempt].phase {
            Phase::Settled { token } => Some(token),
            _ => None,
        };
        for index in 0..N {
            let node = &state.nodes[index];
            let Slot::Raising(count) = node.slots[attempt] else {
                continue;
            };
            let can_come = self.raises(node, attempt) || self.may_be_revived(state, node, attempt);
            let in_vain =
                settled.is_some_and(|token| token <= count || self.is(Flaw::NaiveMaximum));
            if !can_come || in_vain {
                state.nodes[index].slots[attempt] = Slot::Nothing;
            }
        }
    }

    /// Whether a raise that would be refused now may be let through later. By the rules there is no
    /// such raise: a count that was passed is only reached again after a loss of state, and a raise
    /// says before which loss its count was granted.
    fn may_be_revived(&self, state: &State<N>, node: &Node, attempt: usize) -> bool {
        let resent = state.resent_left > 0;
        match self.flaw {
            Some(Flaw::RaiseIgnoresCounter | Flaw::ResentDoesNotCount) => resent,
            Some(Flaw::RaiseNamesNoLoss) => resent || node.holder == Some(small(attempt)),
            Some(Flaw::UnconditionalRaise | Flaw::RaiseIgnoresLease) => true,
            _ => false,
        }
    }

    /// An attempt that cannot return any more has at most raises under way.
    fn settle(&self, state: &mut State<N>, attempt: usize) {
        let raising = |node: &&Node| matches!(node.slots[attempt], Slot::Raising(_));
        let left = state.nodes.iter().filter(raising).count();
        let late = self.is(Flaw::LateGrantIsRaised);
        let phase = &mut state.attempts[attempt].phase;
        if let Phase::Raising { token, missing, .. } = *phase
            && left < usize::from(missing)
            && !late
        {
            *phase = Phase::Settled { token };
        }
        if matches!(phase, Phase::Settled { .. }) && left == 0 {
            *phase = Phase::Over;
        }
    }

    /// Forgets holders. A holder matters as long as its raise may find the lease.
    fn forget_holders(&self, state: &mut State<N>) {
        for node in &mut state.nodes {
            let slot = node.holder.map(|holder| node.slots[usize::from(holder)]);
            let matters = match slot {
                Some(Slot::Granted(count) | Slot::Raising(count)) => {
                    let passed = node.counter.is_none_or(|counter| counter > count);
                    !passed || self.is(Flaw::RaiseIgnoresCounter)
                }
                _ => false,
            };
            if !matters {
                node.holder = None;
            }
        }
    }

    /// Forgets healings whose seed will be refused.
    fn forget_healings(&self, state: &mut State<N>) {
        for healing in 0..HEALINGS {
            let may_lose = self.is(Flaw::SeedNamesNoLoss) && state.losses_left > 0;
            let open = may_lose || self.is(Flaw::SeedReplaces);
            let lists = state.healings[healing].lists;
            let names_none = self.is(Flaw::HealingNamesNoLife) && state.losses_left > 0;
            let patient = |node: &Node| {
                let open = if lists { names_none } else { open };
                let may_change = !node.serves || open;
                node.is_patient_of(healing) && may_change
            };
            if !state.nodes.iter().any(patient) {
                state.drop_healing(healing);
            }
        }
    }
}

impl<const N: usize> State<N> {
    /// All is over. Only facts that the `sometimes` properties ask for are kept.
    fn forget_all(&mut self) {
        for node in &mut self.nodes {
            node.counter = node.counter.map(|_| 0);
            node.slots.fill(Slot::Nothing);
            node.holder = None;
        }
        self.attempts
            .iter_mut()
            .for_each(|attempt| attempt.phase = Phase::Over);
        (0..HEALINGS).for_each(|healing| self.drop_healing(healing));
    }

    /// Nodes are alike, and so are attempts: one order represents all orders.
    pub(crate) fn make_canonical(&mut self) {
        let mut best: Option<([Node; N], [usize; ATTEMPTS])> = None;
        for order in ORDERS {
            let attempts = order.map(|index| self.attempts[index]);
            if !attempts.is_sorted() {
                continue;
            }
            let mut nodes = self.nodes.map(|node| node.renumbered(&order));
            nodes.sort_unstable();
            if best.as_ref().is_none_or(|(least, _)| nodes < *least) {
                best = Some((nodes, order));
            }
        }
        if let Some((nodes, order)) = best {
            self.nodes = nodes;
            self.attempts = order.map(|index| self.attempts[index]);
        }
    }
}

impl Node {
    /// The same state with the attempts in another order: `order[new]` is the old number.
    fn renumbered(self, order: &[usize; ATTEMPTS]) -> Self {
        let new = |old: u8| {
            order
                .iter()
                .position(|one| *one == usize::from(old))
                .map(small)
        };
        Self {
            holder: self.holder.and_then(new),
            slots: order.map(|old| self.slots[old]),
            ..self
        }
    }
}
