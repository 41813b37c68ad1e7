//! The properties that hold in every state, and those that are seen in some.

use lock_core::backend::Moment;
use stateright::Property;

use super::{Client, Lie, Machines, NOW, Stage, State, TICK, Waking, ticks};

impl Client {
    /// The caller goes by its lease.
    pub(super) fn relies(&self) -> bool {
        matches!(self.stage, Stage::Holding(grant) if grant.lease.deadline() > NOW)
    }

    fn waits(&self) -> bool {
        self.stage == Stage::Waiting
    }

    /// Nothing but a wake-up, which may be lost, makes it go on.
    fn is_stuck(&self) -> bool {
        self.sent.is_none() && self.until == Moment::NEVER
    }
}

/// The lease is free, an attempt waits for it, and nothing that comes by itself changes that.
fn is_lost(model: &Machines, state: &State) -> bool {
    let mut clients = state.clients.iter().enumerate();
    let goes_on = |(number, it): (usize, &Client)| !it.is_stuck() || model.may_stir(state, number);
    state.server.held.is_none()
        && !state.silent
        && state.clients.iter().any(Client::waits)
        && !clients.any(goes_on)
}

pub(super) fn all() -> Vec<Property<Machines>> {
    vec![
        Property::always("one holder", |_, state: &State| {
            state.clients.iter().filter(|it| it.relies()).count() <= 1
        }),
        Property::always("own lease only", |_, state: &State| {
            !state.broken.contains(&Lie::StrangerEnded)
        }),
        Property::always("tokens rise", |_, state: &State| {
            !state.broken.contains(&Lie::OutOfOrder)
        }),
        Property::always("nothing is left", |_, state: &State| {
            let mut clients = state.clients.iter().enumerate();
            !clients.any(|(number, it)| {
                it.stage == Stage::Over { clean: true } && state.server.has(number)
            })
        }),
        Property::always("a lost lease is not released", |_, state: &State| {
            !state.broken.contains(&Lie::LossIsReleased)
        }),
        Property::always("a released lease is not lost", |_, state: &State| {
            !state.broken.contains(&Lie::ReleaseIsLoss)
        }),
        // By its grace at most after each answer, and one request and a cancel after its end. An
        // attempt that is offered the lease then asks once more.
        Property::always("no wait is late", |model, state: &State| {
            let late = |it: &Client| {
                let put_off = it.until > std::cmp::max(it.end, NOW) + TICK;
                let once = model.waking != Waking::Offers && !it.is_closed;
                let over = once && it.end + ticks(2) < NOW;
                it.waits() && (put_off || over)
            };
            let unbounded = state.broken.contains(&Lie::SilenceUnbounded);
            !unbounded && !state.clients.iter().any(late)
        }),
        Property::always("no lost waiter", |model, state: &State| {
            !is_lost(model, state)
        }),
        Property::sometimes("one holds after another", |_, state: &State| {
            let is_over = |it: &Client| it.stage == Stage::Over { clean: true };
            state.clients.iter().any(is_over) && state.clients.iter().any(Client::relies)
        }),
        Property::sometimes("a waiter is granted", |_, state: &State| {
            let waited = |it: &Client| matches!(it.stage, Stage::Holding(it) if it.waited);
            state.clients.iter().any(waited)
        }),
    ]
}
