//! The properties that must hold in every state, and the properties that some state must show.

use stateright::Property;

use super::{
    Check, Store,
    state::{Fault, Phase, State},
};

impl Store {
    pub(crate) fn expectations(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no lost update", |_, state: &State| {
                state.value.contains_all(state.acknowledged)
            }),
            // No acquisition writes after the acquire of a later grant has returned.
            Property::always("no late write", |_, state: &State| {
                !state.has_seen(Fault::LateWrite)
            }),
            // No acquisition writes under a token unless it is greater than each token that another
            // acquisition has claimed.
            Property::always("claim order", |_, state: &State| {
                !state.has_seen(Fault::OutOfClaimOrder)
            }),
            // The holder of the lease at the present primary can still write.
            Property::always("the holder gets in", |store: &Self, state: &State| {
                let holder = state.current().1.holder;
                holder.is_none_or(|holder| store.gets_in(state, holder))
            }),
            Property::sometimes("somebody writes", |_, state: &State| {
                !state.acknowledged.is_empty()
            }),
        ]
    }

    /// Whether this acquisition has written, or can write if it is undisturbed from now on.
    fn gets_in(&self, state: &State, index: usize) -> bool {
        let this = &state.acquisitions[index];
        // With claims, an acquisition only has to pass the check of its claim.
        let check = match self.check {
            Check::Claimed => Check::GreaterOrOwn,
            check => check,
        };
        if this.phase == Phase::Done || self.passes(check, state, index, this.token) {
            return true;
        }
        let (side, _) = state.current();
        if !self.may_raise(state, index, side) {
            return false;
        }
        let mut state = state.clone();
        // The acquisition is refused, and learns the mark that refused it.
        let mark = state.mark.token;
        self.grant(&mut state, index, side, mark);
        let token = state.acquisitions[index].token;
        self.passes(check, &state, index, token)
    }
}
