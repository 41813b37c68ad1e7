//! An attempt and the steps of the nodes for it: grant, fix, raise.

use super::{
    Flaw, Token, Tokens,
    actions::positions,
    state::{Fault, Node, Phase, Site, Slot, State, small},
};
use crate::set::Set;

impl<const N: usize> Tokens<N> {
    pub(crate) fn grant(&self, state: &mut State<N>, attempt: usize, node: usize, of_new: bool) {
        if state.attempts[attempt].phase == Phase::Idle {
            self.begin(state, attempt, of_new);
        }
        let phase = state.attempts[attempt].phase;
        let name = usize::from(state.attempts[attempt].name.0);
        let node = &mut state.nodes[node];
        let counter = node.counter.unwrap_or_default() + 1;
        let wanted = self.at_least.filter(|_| name + 1 == self.attempts);
        let counter = std::cmp::max(counter, wanted.unwrap_or_default());
        node.counter = Some(counter);
        node.holder = Some(small(attempt));
        node.slots[attempt] = match phase {
            Phase::Collecting { .. } => Slot::Granted(counter),
            Phase::Raising { .. } if self.is(Flaw::LateGrantIsRaised) => Slot::Raising(counter),
            _ => Slot::Nothing,
        };
    }

    fn begin(&self, state: &mut State<N>, attempt: usize, of_new: bool) {
        let floor = state.last_returned();
        let this = &mut state.attempts[attempt];
        this.phase = Phase::Collecting { floor };
        this.is_new = of_new;
        let this = *this;
        for node in state.nodes.iter_mut().filter(|node| this.knows(node)) {
            node.slots[attempt] = Slot::Asked;
        }
    }

    /// An acquire arrives that has been answered before. The lease may have ended since, so it is
    /// granted as if it were new.
    pub(crate) fn grant_again(
        &self,
        state: &mut State<N>,
        attempt: usize,
        node: usize,
        heard: bool,
    ) {
        state.resent_left -= 1;
        let node = &mut state.nodes[node];
        let counted = u8::from(!self.is(Flaw::ResentDoesNotCount));
        let counter = node.counter.unwrap_or_default() + counted;
        node.counter = Some(counter);
        node.holder = Some(small(attempt));
        if heard {
            node.slots[attempt] = Slot::Granted(counter);
        }
    }

    /// Which nodes count is fixed, and so is the token.
    pub(crate) fn fix(&self, state: &mut State<N>, attempt: usize, counted: Set) {
        let counted = positions(state, counted);
        let Phase::Collecting { floor } = state.attempts[attempt].phase else {
            panic!("only who collects can fix");
        };
        let mut token = 0;
        for (index, node) in state.nodes.iter_mut().enumerate() {
            let slot = &mut node.slots[attempt];
            if let Some(count) = slot.granted() {
                let in_time = matches!(slot, Slot::Granted(_));
                let counts = counted.contains(index);
                if counts {
                    token = std::cmp::max(token, count);
                }
                *slot = if counts && in_time {
                    Slot::Raising(count)
                } else {
                    Slot::Nothing
                };
            }
        }
        let missing = if self.is(Flaw::MajorityOfTheGranting) {
            counted.len() / 2 + 1
        } else {
            small(self.majority())
        };
        state.attempts[attempt].phase = Phase::Raising {
            token,
            missing,
            out_of_order: token <= floor,
        };
    }

    /// Whether these nodes are enough without a raise.
    pub(crate) fn returns_at_once(
        &self,
        state: &State<N>,
        attempt: usize,
        mut members: impl Iterator<Item = usize>,
    ) -> bool {
        let first = members.next();
        let count = |node: usize| state.nodes[node].slots[attempt].granted();
        let equal = members.all(|node| count(node) == first.and_then(count));
        self.is(Flaw::NaiveMaximum) || equal && self.is(Flaw::EqualCountsAreNotRaised)
    }

    /// Whether a raise of this attempt has been sent to the node and would not be refused.
    pub(crate) fn would_raise(&self, state: &State<N>, attempt: usize, node: &Node) -> bool {
        let sent = matches!(node.slots[attempt], Slot::Raising(_));
        let has_token = state.attempts[attempt].token().is_some();
        sent && has_token && self.raises(node, attempt)
    }

    /// The rule of the raise: the lease still belongs to this attempt, and the node has not counted
    /// since.
    pub(crate) fn raises(&self, node: &Node, attempt: usize) -> bool {
        let (Slot::Granted(count) | Slot::Raising(count)) = node.slots[attempt] else {
            return false;
        };
        let is_holder = node.holder == Some(small(attempt));
        let is_untouched = node.counter == Some(count);
        match self.flaw {
            // The node does not serve, and answers nothing else.
            _ if !node.serves || node.site == Site::Retired => false,
            Some(Flaw::UnconditionalRaise) => true,
            Some(Flaw::RaiseIgnoresCounter) => is_holder,
            Some(Flaw::RaiseIgnoresLease) => is_untouched,
            _ => is_holder && is_untouched,
        }
    }

    pub(crate) fn raise(&self, state: &mut State<N>, attempt: usize, node: usize) {
        let token = state.attempts[attempt].token();
        let node = &mut state.nodes[node];
        node.counter = std::cmp::max(node.counter, token);
        node.slots[attempt] = Slot::Nothing;
        if let Phase::Raising { missing, .. } = &mut state.attempts[attempt].phase {
            *missing -= 1;
            if *missing == 0 {
                self.finish(state, attempt);
            }
        }
    }

    /// The attempt returns its token.
    pub(crate) fn finish(&self, state: &mut State<N>, attempt: usize) {
        if let Phase::Raising {
            token,
            out_of_order,
            ..
        } = state.attempts[attempt].phase
        {
            state.blame(Fault::OutOfOrder, out_of_order);
            let twice = state.returned.contains(usize::from(token));
            state.blame(Fault::Duplicate, twice);
            state.returned.insert(usize::from(token));
            state.attempts[attempt].phase = Phase::Settled { token };
        }
    }
}

impl Slot {
    /// The count that was granted to an attempt that has not fixed its nodes yet.
    pub(crate) fn granted(self) -> Option<Token> {
        match self {
            Self::Granted(count) | Self::GrantedBefore(count) => Some(count),
            _ => None,
        }
    }
}

impl super::state::Attempt {
    /// The count to which the attempt asks nodes to raise.
    pub(crate) fn token(self) -> Option<Token> {
        match self.phase {
            Phase::Raising { token, .. } | Phase::Settled { token } => Some(token),
            _ => None,
        }
    }
}
