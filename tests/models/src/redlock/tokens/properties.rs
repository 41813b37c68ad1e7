//! The properties that must hold in every state, and the properties that some state must show.

use stateright::Property;

use super::{
    Tokens,
    state::{Fault, State},
};

impl<const N: usize> Tokens<N> {
    pub(crate) fn expectations(&self) -> Vec<Property<Self>> {
        let mut expected = vec![
            // G1. A token is greater than every token that was returned before its attempt began.
            Property::always("order", |_, state: &State<N>| {
                !state.has_seen(Fault::OutOfOrder)
            }),
            Property::always("unique", |_, state: &State<N>| {
                !state.has_seen(Fault::Duplicate)
            }),
        ];
        if self.flaw.is_none() {
            expected.push(Property::sometimes("all return", |tokens: &Self, state| {
                usize::from(state.returned.len()) == tokens.attempts
            }));
            if self.losses > 0 {
                expected.push(Property::sometimes(
                    "all losses are healed, and all return",
                    |tokens, state: &State<N>| {
                        let all = usize::from(state.returned.len()) == tokens.attempts;
                        let healed = state.nodes.iter().all(|node| node.serves);
                        all && healed && state.losses_left == 0
                    },
                ));
            }
            if self.lists {
                expected.push(Property::sometimes(
                    "a node without the counter serves again, and all return",
                    |tokens, state: &State<N>| {
                        let all = usize::from(state.returned.len()) == tokens.attempts;
                        let healed = state.nodes.iter().all(|node| node.serves);
                        let without = state.nodes.iter().any(|node| node.counter.is_none());
                        all && healed && without && state.losses_left == 0
                    },
                ));
            }
        }
        expected
    }
}
