//! A line of places in a key store that gives each change a revision, such as etcd. The oldest
//! place holds the resource. The token of a place is known from the beginning. This model asks what
//! happens to a waiter whose token is too small when its turn comes.
//!
//! A place names the least token that is good enough. An attempt that is first with a smaller token
//! gives its place back and takes another place, at the end of the line. Its caller does not learn
//! this.
//!
//! A waiter looks, or gets a notice that it is the first. Another attempt causes the notice,
//! perhaps the attempt before it, in the step in which that attempt leaves. A waiter may read the
//! notice at any later time, but it knows by itself when its lease ends.
//!
//! Each transaction is a step. A request may be sent again at any time, also while the first
//! request is under way; the answer to a transaction may be lost; a lease may run out.

mod actions;
mod tests;

use stateright::{Model, Property};

pub(crate) use self::actions::Action;
use crate::set::Set;

/// The acquisition of each attempt. The first attempt asks for a floor of its own.
const ACQUISITION_OF: [usize; 4] = [0, 0, 1, 2];
const ACQUISITIONS: usize = 3;
/// The first attempt of a rival. It and the attempts after it are alike.
const FIRST_RIVAL: usize = 2;
const ATTEMPTS: usize = ACQUISITION_OF.len();
/// The least token that the first attempt asks for.
const WISH: Token = 4;

type Token = u8;

/// One rule left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A place is bound whether or not another place is before it.
    TheFirstIsBoundToo,
    /// A request that finds a place treats it as a place that a caller knows.
    WhatIsFoundWasTold,
    /// A place that several attempts rely on is not given back.
    OthersKeepThePlace,
    /// A place that is gone counts as ended, for each attempt that waited for it.
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
    /// Whether each acquisition was released, or its lease ran out.
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
    /// The greatest floor of the attempts that made the place, or joined it before it was the
    /// first.
    wish: Token,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Attempt {
    /// The attempt asks for a place next.
    #[default]
    Out,
    /// The attempt relies on the place of that revision, and has found it if another attempt has
    /// made it.
    InLine {
        created: Token,
        found: bool,
    },
    /// A notice says that this place is the first, and its token, or that its token is too small.
    Heard {
        created: Token,
        token: Option<Token>,
    },
    /// The attempt gives that place back next.
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
