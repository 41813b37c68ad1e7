//! The properties that must hold in every state, and the properties that some state must show.

use stateright::Property;

use super::{
    Holding,
    state::{Node, Phase, State},
};

impl<const N: usize> Holding<N> {
    pub(crate) fn expectations(&self) -> Vec<Property<Self>> {
        let mut expected = vec![
            Property::always("one holder", |_, state: &State<N>| {
                let believing = state.attempts.iter().filter(|phase| phase.believes());
                believing.count() <= 1
            }),
            // G6. Undo and renew touch only the lease of their own attempt.
            Property::always("own lease only", |_, state: &State<N>| {
                !state.stranger_touched
            }),
        ];
        if self.flaw.is_none() {
            expected.extend([
                Property::sometimes("a renewed holder", |_, state: &State<N>| {
                    let first_is_over = true;
                    state
                        .attempts
                        .contains(&Phase::SecondTerm { first_is_over })
                }),
                Property::sometimes("one holds after another", |_, state: &State<N>| {
                    let forgotten = |node: &Node| node.lease.map(|lease| lease.attempt) == Some(0);
                    state.attempts[2].believes() && state.nodes.iter().any(forgotten)
                }),
            ]);
        }
        expected
    }
}
