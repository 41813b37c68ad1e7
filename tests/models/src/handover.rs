//! One lock service takes the place of another in front of a store, and is replaced again, while
//! the clients of both go on. Which steps does the store have to take, in which order, and which
//! number do new tokens have to exceed?
//!
//! There is one resource and two services that count independently. Each acquisition is granted by
//! one of them and claims in the store later, perhaps much later. No service ever learns of a
//! handover: both grant all the time. The store accepts the claims of one service, the issuer,
//! above the mark. A client that is refused as stale acquires again, with a token above the number
//! that the refusal names. The operator who hands over may be killed at any step and start anew, or
//! turn back.
//!
//! Time is counted in tokens: the clock goes on by one with each grant, because no service issues
//! more tokens than the clock counts. A service issues a token that is above its last token, and
//! that the clock has reached or a client has asked for.

mod actions;
mod tests;

use stateright::{Model, Property};

pub(crate) use self::actions::Action;

/// How many acquisitions there are.
const ACQUISITIONS: usize = 3;

/// By how much the clock that an operator reads is put forward.
const MARGIN: Token = 1;

type Token = u8;

/// The steps of a handover, in order. Each step may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The new service is asked for a token. If this token is above the marks and the clock, the
    /// service is refused.
    Probe,
    /// The store accepts claims of the new service only.
    ChangeIssuer,
    /// Chooses a number above the clock, and no less than the mark.
    Choose,
    /// Chooses the mark.
    ChooseTheMark,
    /// The mark is raised to the number, belongs to the new service, and to no holder.
    SealMark,
    /// The mark is raised and belongs to the new service, but its holder stays.
    RaiseMark,
}

/// The model: the steps there and back, and how often each event may happen.
#[derive(Clone, Debug)]
pub(crate) struct Handover {
    there: Vec<Step>,
    back: Vec<Step>,
    restarts: u8,
    /// How far above the clock each service has counted already.
    ahead: [Token; 2],
    lift: Lift,
}

/// The next step of a client that was refused as stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lift {
    /// Acquires again, with a token above the mark.
    AboveTheMark,
    /// Acquires again, with any token.
    Anywhere,
}

/// The whole state at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The last token of each service.
    last: [Token; 2],
    issuer: usize,
    mark: Option<Mark>,
    acquisitions: [Acquisition; ACQUISITIONS],
    /// How many grants there were, which is the clock, too.
    grants: Token,
    /// The target of the present handover, or else of the last handover.
    to: usize,
    /// The next step of the handover.
    next: usize,
    above: Token,
    handovers: u8,
    restarts: u8,
    /// A new service was refused: no handover follows.
    refused: bool,
    broken: Option<Broken>,
    /// A client of the first service claimed after a handover there and back.
    came_back: bool,
    /// A client was refused as stale, acquired again, and claimed.
    was_lifted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Mark {
    issuer: usize,
    token: Token,
    /// The acquisition that may write.
    holder: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Acquisition {
    #[default]
    Idle,
    /// The acquisition has a token, and has not claimed it.
    Granted {
        by: usize,
        token: Token,
        order: u8,
        /// The number of handovers when it was refused as stale while its service was the current
        /// one.
        again: Option<u8>,
        /// The number of handovers before the grant, if its service was the current one then.
        in_place: Option<u8>,
    },
    /// The token was stale: the acquisition asks for a token above this one.
    Stale {
        by: usize,
        mark: Token,
        again: Option<u8>,
    },
    Claimed {
        by: usize,
        order: u8,
    },
    Refused,
}

/// A promise that was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Broken {
    /// A claim went through after the claim of a later grant.
    LateClaim,
    /// A grant wrote after the claim of a later grant.
    LateWrite,
    /// The service that was replaced got a claim or a write through.
    Replaced,
    /// The latest grant was refused a second time, although no handover was in progress since it
    /// was made.
    LockedOut,
}

impl Handover {
    /// As built, there and back.
    pub(crate) fn there_and_back() -> Self {
        let steps = [
            Step::Probe,
            Step::ChangeIssuer,
            Step::Choose,
            Step::SealMark,
        ];
        Self {
            there: steps.to_vec(),
            back: steps.to_vec(),
            restarts: 2,
            ahead: [0, 0],
            lift: Lift::AboveTheMark,
        }
    }

    fn steps(&self, state: &State) -> &[Step] {
        if state.to == 1 {
            &self.there
        } else {
            &self.back
        }
    }

    /// No handover is in progress.
    fn is_done(&self, state: &State) -> bool {
        state.handovers == 0 || state.next == self.steps(state).len()
    }

    /// A handover is complete, and it is the latest handover.
    fn is_in_place(&self, state: &State) -> bool {
        state.handovers > 0 && !state.refused && self.is_done(state)
    }
}

impl Model for Handover {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            last: self.ahead,
            issuer: 0,
            mark: None,
            acquisitions: [Acquisition::Idle; ACQUISITIONS],
            grants: 0,
            to: 0,
            next: 0,
            above: 0,
            handovers: 0,
            restarts: 0,
            refused: false,
            broken: None,
            came_back: false,
            was_lifted: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.take(&mut state, action);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no late claim", |_, state: &State| {
                state.broken != Some(Broken::LateClaim)
            }),
            Property::always("no late write", |_, state: &State| {
                state.broken != Some(Broken::LateWrite)
            }),
            Property::always("never both", |_, state: &State| {
                state.broken != Some(Broken::Replaced)
            }),
            Property::always("the latest gets in", |_, state: &State| {
                state.broken != Some(Broken::LockedOut)
            }),
            Property::sometimes("there and back", |_, state: &State| state.came_back),
            Property::sometimes("lifted", |_, state: &State| state.was_lifted),
        ]
    }
}
