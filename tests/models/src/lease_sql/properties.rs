//! What must hold.

use stateright::Property;

use super::{ATTEMPTS, Client, HOLDERS, LeaseSql, OF, Outcome, State};

impl State {
    fn holds(&self, holder: usize) -> bool {
        (0..ATTEMPTS).any(|one| OF[one] == holder && self.clients[one] == Client::Holding)
    }

    fn relies(&self, holder: usize) -> bool {
        self.holds(holder) && self.told[holder].is_some_and(|told| told.until > self.now)
    }

    fn is_free(&self) -> bool {
        let lease = self.tables.lease;
        lease.holder.is_none() || lease.expires_at <= self.now
    }

    /// A living lease of an attempt that was released, or whose cancellation was answered.
    fn has_ghost(&self) -> bool {
        let ended = |one: usize| match self.clients[one] {
            Client::Released => true,
            Client::Left => !self.cancels.contains(one),
            _ => false,
        };
        !self.is_free() && self.tables.lease.attempts.members().any(ended)
    }

    /// The store accepts what this holder writes.
    pub(super) fn writes(&self, holder: usize) -> Option<u8> {
        let told = self.told[holder].filter(|told| told.claimed)?;
        (self.tables.mark == Some((told.token, holder))).then_some(told.token)
    }
}

/// Somebody waits for a free resource, and nothing that comes by itself lets anybody have it.
fn is_stuck(model: &LeaseSql, state: &State) -> bool {
    let waits = |one: &usize| state.clients[*one] == Client::Asking;
    let goes_on = |one: usize| {
        model.may_ask(state, one) && model.acquire(&mut state.clone(), one) != Outcome::Waiting
    };
    state.is_free()
        && (0..ATTEMPTS).any(|one| waits(&one))
        && state.cancels.is_empty()
        && !(0..ATTEMPTS).any(|one| waits(&one) && goes_on(one))
        && !(0..ATTEMPTS).any(|one| model.may_fall_silent(state, one))
}

pub(super) fn all() -> Vec<Property<LeaseSql>> {
    vec![
        // After a promotion, until the deadline of the one whose lease was lost.
        Property::always("one holder", |_, state: &State| {
            let holders = (0..HOLDERS).filter(|holder| state.relies(*holder));
            state.promotions > 0 || holders.count() <= 1
        }),
        Property::always("tokens rise", |_, state: &State| !state.repeated),
        Property::always("no write of an older token", |_, state: &State| {
            let written = (0..HOLDERS).filter_map(|holder| state.writes(holder));
            written.into_iter().all(|token| token >= state.claimed)
        }),
        Property::always("at most one writes", |_, state: &State| {
            let writers = (0..HOLDERS).filter_map(|holder| state.writes(holder));
            writers.count() <= 1
        }),
        Property::always(
            "nothing older is committed after a claim",
            |_, state: &State| !state.stale,
        ),
        // What a crash has taken back ends by its ttl.
        Property::always("no ghost", |_, state: &State| {
            state.forgot || !state.has_ghost()
        }),
        Property::always("a lease that ran out has ended", |_, state: &State| {
            !state.revived
        }),
        Property::always("in turn", |_, state: &State| !state.passed_over),
        Property::always("who waits is served", |model, state: &State| {
            !is_stuck(model, state)
        }),
        Property::always("released is released", |_, state: &State| {
            !state.refused_release
        }),
    ]
}
