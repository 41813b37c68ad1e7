//! A line of places in a store of keys that revises them one by one, as etcd is: the oldest place
//! holds the resource. Its token is known from the beginning, so what becomes of those whose token
//! is too small by the time it is their turn?
//!
//! A place says from which token on it is good enough. An attempt that is first with a
//! lesser one gives it back for another one, at the end of the line, and its caller learns nothing.
//!
//! A waiter looks, or gets a notice that it is the first. Another attempt sends the notice, perhaps
//! the one before it in the step in which that one leaves. A waiter reads it as late as it likes,
//! but it knows itself when its lease ends.
//!
//! Each transaction is a step. A request may be sent again at any time, also while the first is
//! under way elsewhere; the answer to a transaction may be lost; a lease may run out.

mod actions;
mod tests;

use stateright::{Model, Property};

pub(crate) use self::actions::Action;
use crate::set::Set;

/// Of which acquisition each attempt is. The first attempt asks for a floor of its own.
const ACQUISITION_OF: [usize; 4] = [0, 0, 1, 2];
const ACQUISITIONS: usize = 3;
/// The first attempt of somebody else. It and those after it are alike.
const FIRST_RIVAL: usize = 2;
const ATTEMPTS: usize = ACQUISITION_OF.len();
/// The token that the first attempt asks for at least.
const WISH: Token = 4;

type Token = u8;

/// One rule left out. Each of them must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A place is bound whether or not somebody is before it.
    TheFirstIsBoundToo,
    /// A request that finds a place takes it for one that a caller knows.
    WhatIsFoundWasTold,
    /// A place that several attempts rely on is not given back.
    OthersKeepThePlace,
    /// A place that is gone has ended, for each attempt that waited for it.
    WhatIsGoneHasEnded,
    /// A request with a floor joins a place, and the place is not bound to it.
    WhoJoinsBindsNothing,
    /// A notice counts after the end of the lease.
    WhatWasHeardCounts,
    /// A waiter gets the notice that it is the first, whether or not its own place is there.
    WhoHasNoPlaceIsToldToo,
}

/// The model, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    flaw: Option<Flaw>,
}

flawed!(Line);

/// Everything there is at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    revision: Token,
    floor: Token,
    places: [Option<Place>; ACQUISITIONS],
    /// Released, or its lease ran out.
    ended: [bool; ACQUISITIONS],
    attempts: [Attempt; ATTEMPTS],
    again: bool,
    /// The place whose lease ran out.
    expired: Option<Token>,
    lost: bool,
    /// Only the observer knows: the place that each acquisition got, and the greatest token.
    told_of: [Option<Token>; ACQUISITIONS],
    greatest: Token,
    broken: Option<Broken>,
    left_for_more: bool,
}

/// A place in line, by the revision that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    created: Token,
    floor: Token,
    least: Token,
    attempts: Set,
    /// The wish of the attempts that made it, or joined it before it was the first.
    wish: Token,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Attempt {
    /// It asks for a place next.
    #[default]
    Out,
    /// It relies on the place of that revision, and has found it if another one has made it.
    InLine {
        created: Token,
        found: bool,
    },
    /// A notice says that this place is the first, and its token, or that this one will not do.
    Heard {
        created: Token,
        token: Option<Token>,
    },
    /// It gives that place back next.
    Leaving {
        created: Token,
    },
    Told {
        token: Token,
    },
    Ended,
}

/// A promise that was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Broken {
    Order,
    OwnFloor,
    Kept,
    Gone,
}

impl Place {
    const fn token(self) -> Token {
        self.floor + self.created
    }
}

impl State {
    /// The oldest place.
    fn first(&self) -> Option<Place> {
        let places = self.places.iter().flatten().copied();
        places.min_by_key(|place| place.created)
    }
}

impl Line {
    /// As built.
    pub(crate) const fn as_built() -> Self {
        Self { flaw: None }
    }
}

impl Model for Line {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.take(&mut state, action);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("order", |_, state: &State| {
                state.broken != Some(Broken::Order)
            }),
            Property::always("its own floor", |_, state: &State| {
                state.broken != Some(Broken::OwnFloor)
            }),
            Property::always("a place is kept", |_, state: &State| {
                state.broken != Some(Broken::Kept)
            }),
            Property::always("no lease that ran out", |_, state: &State| {
                state.broken != Some(Broken::Gone)
            }),
            Property::always("no refusal for nothing", |_, state: &State| {
                let mut attempts = state.attempts.iter().zip(ACQUISITION_OF);
                attempts.all(|(attempt, of)| *attempt != Attempt::Ended || state.ended[of])
            }),
            Property::sometimes("an attempt hears", |_, state: &State| {
                let heard = |attempt: &Attempt| matches!(attempt, Attempt::Heard { .. });
                state.attempts.iter().any(heard)
            }),
            Property::sometimes("a waiter leaves for more", |_, state: &State| {
                state.left_for_more
            }),
        ]
    }
}
