//! One lock service replaces another in front of a store, and is replaced again. Which steps does
//! this take, in which order, while everybody goes on working?
//!
//! There is one resource and two services that count independently. Each acquisition is granted by
//! one of them, as long as that service is in service, and claims in the store later, perhaps much
//! later. The store accepts the claims of one service, the issuer, above the mark. The operator who
//! hands over may be killed at any step and start anew, or turn back. Requests that the operator
//! has already sent to a service may then arrive much later.

mod actions;

use stateright::{Model, Property};

pub use self::actions::Action;

/// How many acquisitions there are.
const ACQUISITIONS: usize = 4;

type Token = u8;

/// The steps of a handover, in order. Each step may be repeated.
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
    /// The store accepts claims of the new service only.
    ChangeIssuer,
    /// The mark is raised below the floor, belongs to the new service, and to no holder.
    SealMark,
}

/// The model: the order of steps, and the greatest number of handovers.
#[derive(Clone, Debug)]
pub struct Handover {
    steps: Vec<Step>,
    handovers: u8,
    restarts: u8,
    late: Late,
}

/// What happens to a request to retire or reinstate whose sender was killed before it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Late {
    /// There are no late requests.
    Never,
    /// It does nothing if the service has meanwhile followed another request: each request carries
    /// the number of those followed when it was sent.
    Compared,
    /// The same, but requests that change nothing are not counted.
    ComparedToChanges,
    /// It is obeyed.
    Obeyed,
}

/// The whole state at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    services: [Service; 2],
    issuer: usize,
    mark: Option<Mark>,
    acquisitions: [Acquisition; ACQUISITIONS],
    /// How many grants there were.
    grants: u8,
    /// The target of the present handover, or else of the last one.
    to: usize,
    /// Its next step.
    next: usize,
    floor: Token,
    handovers: u8,
    restarts: u8,
    /// A request under way, and how many more there may be.
    request: Option<Request>,
    requests: u8,
    /// A claim went through after that of a later grant.
    late_claim: bool,
    /// The latest grant was refused, although no handover was in progress since before it.
    locked_out: bool,
    /// The first service issued a token after it was reinstated.
    came_back: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Service {
    last: Token,
    retired: bool,
    /// How many requests it has followed, if requests are compared.
    changes: u8,
}

/// A request to retire, or to go into service above a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    service: usize,
    /// `None` to retire.
    floor: Option<Token>,
    /// How many requests the service had followed when it was sent.
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
        /// The number of handovers before it, if its service was the one in place then.
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
    /// As built, there and back.
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

    /// With one request that arrives late, and one restart fewer.
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

    /// A handover is complete, and it is the last one so far.
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
