//! One lock service takes the place of another in front of a store, and back again. What are the
//! steps, in which order, while everybody goes on?
//!
//! One resource, two services that count by themselves. Acquisitions are granted by either of them,
//! as long as it is in service, and claim in the store when they get round to it, which may be much
//! later. The store takes the claims of one service, the issuer, above the mark. Whoever hands over
//! may be killed at any step and starts anew, or turns back. What it has asked a service then may
//! arrive much later.

mod actions;

use stateright::{Model, Property};

pub use self::actions::Action;

/// How many acquisitions there are.
const ACQUISITIONS: usize = 4;

type Token = u8;

/// What a handover does, one after the other. Each step may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Step {
    /// The old service grants no more.
    Retire,
    /// Chooses a floor above everything that either service has issued, and above the mark.
    Look,
    /// Chooses a floor above the mark.
    LookAtTheMark,
    /// The new service goes on above the floor, and is in service.
    Reinstate,
    /// The store takes claims of the new service and of no other.
    ChangeIssuer,
    /// The mark is raised below the floor, belongs to the new service, and to no holder.
    SealMark,
}

/// The model: the steps in their order, and how many handovers there are at most.
#[derive(Clone, Debug)]
pub struct Handover {
    steps: Vec<Step>,
    handovers: u8,
    restarts: u8,
    late: Late,
}

/// What becomes of a request to retire or reinstate whose sender was killed before it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Late {
    /// There is none.
    Never,
    /// It does nothing if the service has done what another one says since it was sent: a number
    /// of these goes with it.
    Compared,
    /// The same, but what says what is so already is not counted.
    ComparedToChanges,
    /// It does what it says.
    Obeyed,
}

/// Everything there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    services: [Service; 2],
    issuer: usize,
    mark: Option<Mark>,
    acquisitions: [Acquisition; ACQUISITIONS],
    /// How many grants there were.
    grants: u8,
    /// The one that is under way, or else the last.
    to: usize,
    /// Its next step.
    next: usize,
    floor: Token,
    handovers: u8,
    restarts: u8,
    /// One that is under way, and how often there may be another.
    request: Option<Request>,
    requests: u8,
    /// A claim went through after that of a later grant.
    late_claim: bool,
    /// The latest grant was refused, though no handover was under way since before it.
    locked_out: bool,
    /// The first service issued a token after it was reinstated.
    came_back: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Service {
    last: Token,
    retired: bool,
    /// How many requests it has followed, if they are compared.
    changes: u8,
}

/// A request to retire, or to be in service above a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    service: usize,
    /// None to retire.
    floor: Option<Token>,
    /// How many were followed when it was sent.
    seen: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Mark {
    issuer: usize,
    token: Token,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Acquisition {
    #[default]
    Idle,
    /// It has a token, and has not claimed it.
    Granted {
        by: usize,
        token: Token,
        order: u8,
        /// After how many handovers, if it is by the service that was in place then.
        in_place: Option<u8>,
    },
    Claimed {
        order: u8,
    },
    Refused,
}

impl Late {
    const fn is_compared(self) -> bool {
        matches!(self, Self::Compared | Self::ComparedToChanges)
    }

    /// Whether a request is counted.
    const fn counts(self, changes: bool) -> bool {
        matches!(self, Self::Compared) || (matches!(self, Self::ComparedToChanges) && changes)
    }
}

impl Handover {
    /// As it is built, there and back.
    #[must_use]
    pub fn there_and_back() -> Self {
        Self {
            steps: vec![
                Step::Retire,
                Step::Look,
                Step::Reinstate,
                Step::ChangeIssuer,
                Step::SealMark,
            ],
            handovers: 2,
            restarts: 2,
            late: Late::Never,
        }
    }

    /// With one request that arrives late, and a restart less.
    #[must_use]
    pub fn with_a_late_request(self, late: Late) -> Self {
        Self {
            late,
            restarts: 1,
            ..self
        }
    }

    /// With other steps, or in another order.
    #[must_use]
    pub fn with_steps(self, steps: &[Step]) -> Self {
        Self {
            steps: steps.to_vec(),
            ..self
        }
    }

    /// Without one step.
    #[must_use]
    pub fn without(mut self, step: Step) -> Self {
        self.steps.retain(|one| *one != step);
        self
    }

    fn is_done(&self, state: &State) -> bool {
        state.next == self.steps.len()
    }

    /// A handover has come to its end, and is the last so far.
    fn is_in_place(&self, state: &State) -> bool {
        state.handovers > 0 && self.is_done(state)
    }
}

impl Model for Handover {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            services: [Service::default(); 2],
            issuer: 0,
            mark: None,
            acquisitions: [Acquisition::Idle; ACQUISITIONS],
            grants: 0,
            to: 0,
            next: self.steps.len(),
            floor: 0,
            handovers: 0,
            restarts: 0,
            request: None,
            requests: u8::from(self.late != Late::Never),
            late_claim: false,
            locked_out: false,
            came_back: false,
        }]
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
            Property::always("no late claim", |_, state: &State| !state.late_claim),
            Property::always("the latest gets in", |_, state: &State| !state.locked_out),
            Property::always("who is in place grants", |model: &Self, state: &State| {
                !model.is_in_place(state) || !state.services[state.to].retired
            }),
            Property::always(
                "who is not grants nothing",
                |model: &Self, state: &State| {
                    !model.is_in_place(state) || state.services[1 - state.to].retired
                },
            ),
            Property::sometimes("there and back", |model: &Self, state: &State| {
                state.handovers == 2 && model.is_done(state) && state.came_back
            }),
        ]
    }
}
