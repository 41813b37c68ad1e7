//! The properties that must hold in every state, and those that must be seen in some.

use stateright::Property;

use super::{
    Queue, State,
    watch::{Fault, Note},
};

type Condition = fn(&Queue, &State) -> bool;

/// The properties that must hold in every state, by name.
const PROMISES: &[(&str, Condition)] = &[
    // G1. A token that is returned is greater than every token that was returned to another
    // acquisition before this attempt began.
    ("order", |_, state| never(state, Fault::OutOfOrder)),
    // No two acquisitions are told the same token.
    ("unique", |_, state| never(state, Fault::Duplicate)),
    // G2. One acquisition is never told two tokens, whichever of its attempts is told.
    ("one token", |_, state| never(state, Fault::SecondToken)),
    // G2. An acquire that finds its own lease changes neither its token nor its length.
    ("replay is inert", |_, state| {
        never(state, Fault::ReplayActed)
    }),
    // At most one lease lives, and no request touches that of another acquisition.
    ("exclusion", |_, state| never(state, Fault::StrangerTouched)),
    // The end of an attempt does not end what another attempt of the acquisition was told.
    ("cancel is per attempt", |_, state| {
        never(state, Fault::OtherAttemptEnded)
    }),
    // A lease that a caller was told of ends with its release, or because it runs out.
    ("no loss for nothing", |_, state| {
        never(state, Fault::EndedUnderHolder)
    }),
    // G7. A grant goes to the first in the line, except for clients that could not be reached or
    // let a provisional lease run out and have not polled since.
    ("fifo", |_, state| never(state, Fault::Overtaken)),
    // G7. A silent client delays the others by one provisional lease, however many of its
    // acquisitions are in the line.
    ("a pause is cheap", |_, state| {
        never(state, Fault::PauseIsDear)
    }),
    // Nobody is told that its attempt has ended unless the attempt was cancelled, or its
    // acquisition was released or ran out.
    ("no refusal for nothing", |_, state| {
        never(state, Fault::RefusedForNothing)
    }),
    // After an acquire the lease is never free: the caller has it, or somebody before it.
    ("a poll is enough", |_, state| never(state, Fault::LeftFree)),
    // When nobody wants anything any more and no request is under way, neither a lease nor an entry
    // is left. This needs no waiting: the lease of a live client ends with its release or cancel.
    ("no ghost", |_, state| {
        !state.is_over() || (state.server.lease.is_none() && state.server.queue.is_empty())
    }),
    // When no request is under way, every client can finish all its attempts: alone, if the others
    // stay silent for ever, and all of them together.
    ("no lost waiter", |queue, state| {
        let together: Vec<_> = (0..queue.clients()).collect();
        let alone = || together.chunks(1).all(|one| queue.can_finish(state, one));
        !state.is_quiet() || (queue.can_finish(state, &together) && alone())
    }),
];

/// Steps that must be seen, in the scenarios that exist to show them.
const SIGHTINGS: &[(&str, Note, Condition)] = &[
    ("a poll finds a grant", Note::PollFoundGrant, |_, state| {
        state.watch.note == Some(Note::PollFoundGrant)
    }),
    ("a client is set aside", Note::SetAside, |_, state| {
        state.watch.note == Some(Note::SetAside)
    }),
    ("back in line", Note::BackInLine, |_, state| {
        state.watch.note == Some(Note::BackInLine)
    }),
    (
        "a late acquire is refused",
        Note::LateRefused,
        |_, state| state.watch.note == Some(Note::LateRefused),
    ),
];

fn never(state: &State, fault: Fault) -> bool {
    !state.watch.has_seen(fault)
}

impl Queue {
    pub(crate) fn expectations(&self) -> Vec<Property<Self>> {
        let promises = PROMISES.iter();
        let mut expected: Vec<_> = promises
            .map(|(name, holds)| Property::always(name, *holds))
            .collect();
        if self.flaw.is_none() {
            let sightings = SIGHTINGS.iter().filter(|(_, note, _)| self.shows(*note));
            expected.extend(sightings.map(|(name, _, seen)| Property::sometimes(name, *seen)));
            expected.push(Property::sometimes("all are served", Self::all_are_served));
        }
        expected
    }

    /// Whether this scenario exists to show such a step.
    pub(crate) fn shows(&self, note: Note) -> bool {
        self.shows.contains(&note)
    }

    fn all_are_served(&self, state: &State) -> bool {
        let served = |acquisition| {
            (0..self.attempts.len()).any(|attempt| {
                let told = state.watch.returned[attempt].is_some();
                told && self.acquisition(attempt) == acquisition
            })
        };
        let mut plans = self.attempts.iter();
        state.is_over() && plans.all(|plan| served(plan.acquisition))
    }
}
