//! A store that forgets the marks of idle resources, and keeps a floor in their place. The
//! model shows which floor is enough, and which marks may go.
//!
//! There are two resources and four acquisitions. Each is granted a token, which follows the clock,
//! and claims it later, perhaps much later. Leases end at any moment, and their holders go on.
//! A task refreshes the mark of a living guard. The store forgets at any moment. One mark may be
//! poisoned with a token that no service has issued.
//!
//! Time is a few steps, in each of which a resource has few grants. Several stores that disagree
//! about the time are left out, and so is a handover.

mod tests;

use stateright::{Model, Property};

/// The resource of each acquisition.
const RESOURCES: [usize; 4] = [0, 0, 0, 1];

/// The age at which a mark may be forgotten, in steps. A guard refreshes it before half of that.
const AGE: u8 = 2;

/// The tokens that the clock counts in a step.
const TOKENS: u8 = 4;

/// When a run ends.
const END: u8 = 5;

/// One rule left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The mark is deleted, and no floor takes its place.
    NoFloor,
    /// The floor rises in a transaction of its own, after the deletion.
    FloorLater,
    /// The age of a mark is the age of its claim: no task refreshes the mark.
    AgeByClaimAlone,
    /// Any old mark goes, and its token becomes the floor.
    AnyToken,
    /// The tokens of the second resource count from one, and the store forgets nevertheless.
    TwoScales,
}

/// The model, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Forgetting {
    flaw: Option<Flaw>,
}

flawed!(Forgetting);

/// Everything there is at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct State {
    clock: u8,
    marks: [Option<Mark>; 2],
    floor: u8,
    /// The floor that is still to come.
    later: u8,
    /// The last token of each resource.
    last: [u8; 2],
    /// The greatest token that was claimed, and the acquisition that claimed it.
    greatest: [Option<(u8, usize)>; 2],
    acquisitions: [Acquisition; 4],
    is_poisoned: bool,
    forgotten: u8,
    was_shut_out_by_floor: bool,
    broken: Option<Broken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Mark {
    token: u8,
    /// `None` for the poisoned mark.
    holder: Option<usize>,
    at: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Acquisition {
    #[default]
    Idle,
    Granted {
        token: u8,
        at: u8,
        lives: bool,
    },
    Claimed {
        token: u8,
        lives: bool,
    },
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Broken {
    WentBack,
    LivingRefused,
    FreshRefused,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Time goes by.
    Pass,
    /// The lock service grants.
    Grant(usize),
    /// The token is claimed.
    Claim(usize),
    /// The lease ends.
    Lose(usize),
    /// The task of a living guard refreshes its mark.
    Refresh(usize),
    /// The mark of a resource is forgotten.
    Forget(usize),
    /// The floor rises by itself.
    Rise,
    /// A token that was never issued is claimed for the second resource.
    Poison,
}

impl Forgetting {
    pub(crate) const fn as_built() -> Self {
        Self { flaw: None }
    }

    fn clock_token(&self, state: &State, resource: usize) -> u8 {
        if self.is(Flaw::TwoScales) && resource == 1 {
            return 1;
        }
        1 + TOKENS * state.clock
    }

    /// Whether a guard may stay as it is while a step goes by.
    fn is_refreshed(&self, state: &State, index: usize) -> bool {
        let lives = matches!(
            state.acquisitions[index],
            Acquisition::Claimed { lives: true, .. }
        );
        let mark = state.marks[RESOURCES[index]].filter(|mark| mark.holder == Some(index));
        let Some(mark) = mark.filter(|_| lives && !self.is(Flaw::AgeByClaimAlone)) else {
            return true;
        };
        mark.at + AGE / 2 > state.clock
    }

    fn may_forget(&self, state: &State, resource: usize) -> bool {
        let Some(mark) = state.marks[resource] else {
            return false;
        };
        let is_old = mark.at + AGE <= state.clock;
        let ceiling = 1 + TOKENS * state.clock.saturating_sub(AGE);
        is_old && (self.is(Flaw::AnyToken) || mark.token < ceiling)
    }

    fn grant(&self, state: &mut State, index: usize) {
        let resource = RESOURCES[index];
        let token = std::cmp::max(state.last[resource] + 1, self.clock_token(state, resource));
        state.last[resource] = token;
        // Each earlier lease of the resource has ended.
        for (other, acquisition) in state.acquisitions.iter_mut().enumerate() {
            if RESOURCES[other] == resource {
                acquisition.end();
            }
        }
        let at = state.clock;
        state.acquisitions[index] = Acquisition::Granted {
            token,
            at,
            lives: true,
        };
    }

    fn claim(&self, state: &mut State, index: usize) {
        let resource = RESOURCES[index];
        let Acquisition::Granted { token, at, lives } = state.acquisitions[index] else {
            return;
        };
        let accepted = match state.marks[resource] {
            Some(mark) => token > mark.token,
            None => token > state.floor,
        };
        let greatest = state.greatest[resource];
        if !accepted {
            let is_fresh = at + AGE >= state.clock;
            let is_overtaken = greatest.is_some_and(|(greatest, _)| greatest > token);
            let by_floor = state.marks[resource].is_none();
            if lives && is_fresh && !is_overtaken && by_floor {
                state.broken = Some(Broken::FreshRefused);
            }
            state.was_shut_out_by_floor |= by_floor;
            state.acquisitions[index] = Acquisition::Refused;
            return;
        }
        if greatest.is_some_and(|(greatest, _)| greatest > token) {
            state.broken = Some(Broken::WentBack);
        }
        state.greatest[resource] = std::cmp::max(greatest, Some((token, index)));
        state.marks[resource] = Some(Mark {
            token,
            holder: Some(index),
            at: state.clock,
        });
        state.acquisitions[index] = Acquisition::Claimed { token, lives };
    }

    fn forget(&self, state: &mut State, resource: usize) {
        let Some(mark) = state.marks[resource].take() else {
            return;
        };
        state.forgotten += 1;
        match self.flaw {
            Some(Flaw::NoFloor) => {}
            Some(Flaw::FloorLater) => state.later = std::cmp::max(state.later, mark.token),
            _ => state.floor = std::cmp::max(state.floor, mark.token),
        }
        let holder = mark.holder.map(|holder| state.acquisitions[holder]);
        if let Some(Acquisition::Claimed { lives: true, .. }) = holder {
            state.broken = Some(Broken::LivingRefused);
        }
    }
}

impl Acquisition {
    fn end(&mut self) {
        match self {
            Self::Granted { lives, .. } | Self::Claimed { lives, .. } => *lives = false,
            Self::Idle | Self::Refused => {}
        }
    }

    const fn lives(self) -> bool {
        matches!(
            self,
            Self::Granted { lives: true, .. } | Self::Claimed { lives: true, .. }
        )
    }
}

impl Model for Forgetting {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.clock < END && (0..4).all(|index| self.is_refreshed(state, index)) {
            actions.push(Action::Pass);
        }
        for (index, acquisition) in state.acquisitions.iter().enumerate() {
            match acquisition {
                Acquisition::Idle => actions.push(Action::Grant(index)),
                Acquisition::Granted { .. } => actions.push(Action::Claim(index)),
                Acquisition::Claimed { .. } | Acquisition::Refused => {}
            }
            if acquisition.lives() {
                actions.push(Action::Lose(index));
            }
            if !self.is_refreshed(state, index) {
                actions.push(Action::Refresh(index));
            }
        }
        for resource in 0..2 {
            if state.forgotten < 2 && self.may_forget(state, resource) {
                actions.push(Action::Forget(resource));
            }
        }
        if state.later > state.floor {
            actions.push(Action::Rise);
        }
        if !state.is_poisoned && state.marks[1].is_none() {
            actions.push(Action::Poison);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Pass => state.clock += 1,
            Action::Grant(index) => self.grant(&mut state, index),
            Action::Claim(index) => self.claim(&mut state, index),
            Action::Lose(index) => state.acquisitions[index].end(),
            Action::Refresh(index) => {
                if let Some(mark) = &mut state.marks[RESOURCES[index]] {
                    mark.at = state.clock;
                }
            }
            Action::Forget(resource) => self.forget(&mut state, resource),
            Action::Rise => state.floor = state.later,
            Action::Poison => {
                state.is_poisoned = true;
                state.marks[1] = Some(Mark {
                    token: 1 + TOKENS * (END + 1),
                    holder: None,
                    at: state.clock,
                });
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no token goes back", |_, state: &State| {
                state.broken != Some(Broken::WentBack)
            }),
            Property::always("a living holder stays", |_, state: &State| {
                state.broken != Some(Broken::LivingRefused)
            }),
            Property::always("a fresh grant gets in", |_, state: &State| {
                state.broken != Some(Broken::FreshRefused)
            }),
            Property::sometimes("a mark is forgotten", |_, state: &State| {
                state.forgotten > 0
            }),
        ]
    }
}
