//! The properties that hold in every state, and the properties that are seen in some states.

use std::cmp::max;

use lock_core::backend::Moment;
use stateright::Property;

use super::{
    Machines, NOW, State, TICK, Waking,
    state::{Client, Lie, Stage},
    ticks,
};
use crate::set::Set;

type Condition = fn(&Machines, &State) -> bool;

/// The promises that one wrong step breaks.
const STEPS: &[(&str, Condition)] = &[
    // The model forgets late copies of attempts that have ended, because they get nothing.
    ("a quiet row is quiet", |_, state| {
        let (tables, queue) = (&state.server.tables, &state.server.queue);
        let is_quiet = queue.is_empty() && tables.ended.is_empty() && tables.over.is_empty();
        is_quiet || !tables.is_quiet
    }),
    // A request changes no lease of another acquisition.
    ("own lease only", |_, state| {
        never(state, Lie::StrangerEnded)
    }),
    // G1. A token is greater than each one that a caller of another acquisition knew before this
    // attempt began, and no two acquisitions have the same.
    ("tokens rise", |_, state| never(state, Lie::OutOfOrder)),
    // G2. All attempts of an acquisition get one token.
    ("one token", |_, state| never(state, Lie::SecondToken)),
    // G2. A look that finds the lease of its own acquisition changes neither its token nor its end.
    ("replay is inert", |_, state| never(state, Lie::ReplayActed)),
    ("a lost lease is not released", |_, state| {
        never(state, Lie::LossIsReleased)
    }),
    ("a released lease is not lost", |_, state| {
        never(state, Lie::ReleaseIsLoss)
    }),
    // The end of an attempt ends no lease that a caller of the same acquisition holds.
    ("no loss for nothing", |_, state| {
        never(state, Lie::EndedUnderHolder)
    }),
    // A look that waits for its answer is refused only after the end of its acquisition.
    ("no refusal for nothing", |_, state| {
        never(state, Lie::RefusedForNothing)
    }),
    // G7. A grant goes to the first in the queue. Processes that let an offer run out or could not
    // be reached are passed over until they look.
    ("in turn", |_, state| never(state, Lie::Overtaken)),
    // G7. A process that is paused delays the others by one offer, however many places it has.
    ("a pause is cheap", |_, state| {
        never(state, Lie::PauseIsDear)
    }),
    // After a look the lease is not free. The caller has it, or a waiter before the caller.
    ("a poll is enough", |_, state| never(state, Lie::LeftFree)),
    ("a lease that ran out has ended", |_, state| {
        never(state, Lie::Revived)
    }),
    ("nothing older after a claim", |_, state| {
        never(state, Lie::Stale)
    }),
];

fn never(state: &State, lie: Lie) -> bool {
    !state.broken.contains(&lie)
}

impl Client {
    /// Whether only a wake-up, which may be lost, makes the attempt go on.
    fn is_stuck(&self) -> bool {
        self.sent.is_none() && self.until == Moment::NEVER
    }
}

impl Machines {
    /// Whether the lease is free, an attempt waits for it, and no event that is sure to come
    /// changes that.
    fn is_lost(&self, state: &State) -> bool {
        let mut clients = state.clients.iter().enumerate();
        let goes_on = |(number, it): (usize, &Client)| {
            !it.is_stuck() || self.may_stir(state, number) || self.may_pass_over(state, number)
        };
        state.server.tables.living().is_none()
            && !state.silent
            && state.clients.iter().any(Client::waits)
            && !clients.any(goes_on)
    }

    pub(super) fn expectations(&self) -> Vec<Property<Self>> {
        let mut expected = vec![
            // Not after a promotion, until the deadline of a lease that was lost with it. A release
            // ends the lease for all that repeat the acquisition.
            Property::always("one holder", |model: &Self, state: &State| {
                let clients = state.clients.iter().enumerate();
                let relying = clients.filter(|(_, it)| it.relies());
                let acquisitions = relying.map(|(it, _)| model.acquisition(it));
                let unreleased = acquisitions.filter(|it| !state.by_release.contains(*it));
                unreleased.collect::<Set>().len() <= 1 || state.was_promoted()
            }),
            // A lease that a crash has brought back ends by its ttl.
            Property::always("nothing is left", |_, state: &State| {
                let mut clients = state.clients.iter().enumerate();
                let left = |(number, it): (usize, &Client)| {
                    it.stage == Stage::Over { clean: true } && state.server.has(number)
                };
                state.forgot() || !clients.any(left)
            }),
            // A wait may last longer by its grace after each answer, and by one request and a
            // cancel after its end. An attempt that is offered the lease then asks once more.
            Property::always("no wait is late", |model: &Self, state: &State| {
                let late = |it: &Client| {
                    let put_off = it.until > max(it.end, NOW) + TICK;
                    let once = model.waking != Waking::Offers && !it.is_closed;
                    let over = once && it.end + ticks(2) < NOW;
                    it.waits() && (put_off || over)
                };
                let unbounded = state.broken.contains(&Lie::SilenceUnbounded);
                !unbounded && !state.clients.iter().any(late)
            }),
            Property::always("no lost waiter", |model: &Self, state: &State| {
                !model.is_lost(state)
            }),
            Property::sometimes("one holds after another", |_, state: &State| {
                let is_over = |it: &Client| it.stage == Stage::Over { clean: true };
                state.clients.iter().any(is_over) && state.clients.iter().any(Client::relies)
            }),
        ];
        let steps = STEPS.iter();
        expected.extend(steps.map(|(name, holds)| Property::always(name, *holds)));
        if !self.is_shared(0) {
            expected.push(Property::sometimes(
                "a waiter is granted",
                |_, state: &State| {
                    let waited = |it: &Client| matches!(it.stage, Stage::Holding(it) if it.waited);
                    state.clients.iter().any(waited)
                },
            ));
        }
        expected
    }
}
