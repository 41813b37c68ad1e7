//! Jobs that run once per slot: who may run which step of which slot, when runners die, are paused
//! and taken over, and when old markers are forgotten.
//!
//! A job has one resource. A runner is granted its lease, claims the token in the store, reads
//! the state of the slot, commits its steps one by one, and marks the slot as done. The store
//! accepts a transaction only from the grant that its mark shows. Leases end at any time: any
//! runner may be granted the next lease, and the runner before goes on with its work. A runner that
//! asks for the first slot may have chosen this slot long ago. A runner that asks for the next slot
//! takes the first slot that is not done.
//!
//! The model leaves out time, and so back-off and the question which slots are due. It also leaves
//! out the lock service, which has models of its own.

mod tests;

use stateright::{Model, Property};

const SLOTS: usize = 2;
const STEPS: u8 = 2;
const RUNNERS: usize = 2;

type Token = u8;

/// One rule left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Progress is saved in a transaction after the transaction of the effect.
    MarkerOutside,
    /// A runner reads the state of the slot before it claims, and relies on this state.
    LooksBeforeTheClaim,
    /// Old markers are deleted, and no low slot is kept.
    ForgetsByAge,
    /// A failure is noted without a look at the mark.
    FailureUnfenced,
}

/// The model: how often each event may happen, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Jobs {
    grants: Token,
    failures: u8,
    flaw: Option<Flaw>,
}

flawed!(Jobs);

/// Everything there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    last: Token,
    mark: Token,
    runners: [Runner; RUNNERS],
    slots: [Slot; SLOTS],
    /// The slots below this one are forgotten.
    low: usize,
    failures: u8,
    taken_over: bool,
    told_after_all: bool,
}

/// A row of the store, and the effects that were really committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Slot {
    progress: u8,
    done: bool,
    failed: bool,
    effects: [u8; STEPS as usize],
    out_of_order: bool,
    failed_when_done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Runner {
    Idle,
    Granted {
        token: Token,
        work: Work,
    },
    Claimed {
        token: Token,
        work: Work,
    },
    Working {
        token: Token,
        slot: usize,
        next: u8,
    },
    /// The runner has committed the effect of a step, and not yet its progress.
    Unsaved {
        token: Token,
        slot: usize,
        next: u8,
    },
}

/// The next work of a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    Asked(Ask),
    /// The runner has looked already.
    Seen {
        slot: usize,
        next: u8,
    },
}

/// Which slot a runner asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    /// The first slot, whatever has happened since it was chosen.
    First,
    /// The first slot that is not done.
    Next,
}

/// One step. The numbers are those of runners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The lease before has ended, in time or not.
    Grant(usize, Ask),
    /// Raises the mark, or is refused.
    Claim(usize),
    /// Reads the row of its slot.
    Look(usize),
    /// Commits the effect of a step with its progress, or after the last step the marker.
    Step(usize),
    /// Saves the progress in a transaction of its own.
    Save(usize),
    /// The work fails: it is rolled back, and the failure noted.
    Fail(usize),
    /// The runner dies.
    Die(usize),
    /// An operator forgets the first slot, which is done.
    Forget,
}

impl Jobs {
    /// As built.
    pub(crate) const fn as_built() -> Self {
        Self {
            grants: 4,
            failures: 1,
            flaw: None,
        }
    }

    fn grant(&self, state: &mut State, runner: usize, ask: Ask) {
        state.last += 1;
        let early = self.is(Flaw::LooksBeforeTheClaim);
        let work = match early.then(|| state.look(ask)).flatten() {
            Some((slot, next)) => Work::Seen { slot, next },
            None => Work::Asked(ask),
        };
        let token = state.last;
        state.runners[runner] = Runner::Granted { token, work };
    }

    fn step(&self, state: &mut State, runner: usize) {
        let Runner::Working { token, slot, next } = state.runners[runner] else {
            return;
        };
        state.runners[runner] = Runner::Idle;
        if token != state.mark {
            return;
        }
        if next == STEPS {
            state.slots[slot].done = true;
            return;
        }
        state.has_effect(slot, next);
        if self.is(Flaw::MarkerOutside) {
            state.runners[runner] = Runner::Unsaved { token, slot, next };
            return;
        }
        state.save(runner, token, slot, next + 1);
    }

    fn fail(&self, state: &mut State, runner: usize) {
        let Runner::Working { token, slot, .. } = state.runners[runner] else {
            return;
        };
        state.failures += 1;
        state.runners[runner] = Runner::Idle;
        if token == state.mark || self.is(Flaw::FailureUnfenced) {
            let is_done = state.is_done(slot);
            let slot = &mut state.slots[slot];
            slot.failed = true;
            slot.failed_when_done |= is_done;
        }
    }

    /// Forgets the first slot, with a grant for this, which interrupts the runner at work.
    fn forget(&self, state: &mut State) {
        let slot = &mut state.slots[0];
        (slot.progress, slot.done, slot.failed) = (0, false, false);
        if !self.is(Flaw::ForgetsByAge) {
            state.low = 1;
        }
        state.last += 1;
        state.mark = state.last;
    }
}

impl State {
    fn is_done(&self, slot: usize) -> bool {
        slot < self.low || self.slots[slot].done
    }

    fn all(&self, holds: fn(&Slot) -> bool) -> bool {
        self.slots.iter().all(holds)
    }

    /// The slot to run and its next step, if there is anything to do.
    fn look(&self, ask: Ask) -> Option<(usize, u8)> {
        let slot = match ask {
            Ask::First => 0,
            Ask::Next => (0..SLOTS).find(|slot| !self.is_done(*slot))?,
        };
        (!self.is_done(slot)).then(|| (slot, self.slots[slot].progress))
    }

    fn claim(&mut self, runner: usize) {
        let Runner::Granted { token, work } = self.runners[runner] else {
            return;
        };
        self.runners[runner] = if token > self.mark {
            self.mark = token;
            Runner::Claimed { token, work }
        } else {
            Runner::Idle
        };
    }

    fn start(&mut self, runner: usize) {
        let Runner::Claimed { token, work } = self.runners[runner] else {
            return;
        };
        let found = match work {
            Work::Asked(ask) => self.look(ask),
            Work::Seen { slot, next } => Some((slot, next)),
        };
        self.told_after_all |= work == Work::Asked(Ask::First) && self.low > 0;
        self.runners[runner] = match found {
            Some((slot, next)) => {
                self.taken_over |= next > 0;
                Runner::Working { token, slot, next }
            }
            None => Runner::Idle,
        };
    }

    fn has_effect(&mut self, slot: usize, step: u8) {
        let out_of_order = (0..slot).any(|before| !self.is_done(before));
        let slot = &mut self.slots[slot];
        slot.effects[usize::from(step)] += 1;
        slot.out_of_order |= out_of_order;
    }

    fn save(&mut self, runner: usize, token: Token, slot: usize, next: u8) {
        self.slots[slot].progress = next;
        self.runners[runner] = Runner::Working { token, slot, next };
    }

    fn save_later(&mut self, runner: usize) {
        let Runner::Unsaved { token, slot, next } = self.runners[runner] else {
            return;
        };
        self.runners[runner] = Runner::Idle;
        if token == self.mark {
            self.save(runner, token, slot, next + 1);
        }
    }
}

impl Model for Jobs {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            last: 0,
            mark: 0,
            runners: [Runner::Idle; RUNNERS],
            slots: [Slot::default(); SLOTS],
            low: 0,
            failures: 0,
            taken_over: false,
            told_after_all: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (runner, doing) in state.runners.iter().enumerate() {
            match doing {
                Runner::Idle if state.last < self.grants => {
                    actions.extend([Ask::First, Ask::Next].map(|ask| Action::Grant(runner, ask)));
                }
                Runner::Idle => {}
                Runner::Granted { .. } => actions.push(Action::Claim(runner)),
                Runner::Claimed { .. } => actions.push(Action::Look(runner)),
                Runner::Working { .. } => {
                    actions.push(Action::Step(runner));
                    if state.failures < self.failures {
                        actions.push(Action::Fail(runner));
                    }
                }
                Runner::Unsaved { .. } => actions.push(Action::Save(runner)),
            }
            if *doing != Runner::Idle {
                actions.push(Action::Die(runner));
            }
        }
        if state.slots[0].done && state.last < self.grants {
            actions.push(Action::Forget);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Grant(runner, ask) => self.grant(&mut state, runner, ask),
            Action::Claim(runner) => state.claim(runner),
            Action::Look(runner) => state.start(runner),
            Action::Step(runner) => self.step(&mut state, runner),
            Action::Save(runner) => state.save_later(runner),
            Action::Fail(runner) => self.fail(&mut state, runner),
            Action::Die(runner) => state.runners[runner] = Runner::Idle,
            Action::Forget => self.forget(&mut state),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no step twice", |_, state: &State| {
                state.all(|slot| slot.effects.iter().all(|times| *times < 2))
            }),
            Property::always("done is whole", |_, state: &State| {
                state.all(|slot| !slot.done || !slot.effects.contains(&0))
            }),
            Property::always("slots in order", |_, state: &State| {
                state.all(|slot| !slot.out_of_order)
            }),
            Property::always("what is done does not fail", |_, state: &State| {
                state.all(|slot| !slot.failed_when_done)
            }),
            Property::sometimes("taken over", |_, state: &State| state.taken_over),
            Property::sometimes("told after all", |_, state: &State| state.told_after_all),
            Property::sometimes("failed, then done", |_, state: &State| {
                state.slots.iter().any(|slot| slot.failed && slot.done)
            }),
            Property::sometimes("all done", |_, state: &State| {
                (0..SLOTS).all(|slot| state.is_done(slot))
            }),
        ]
    }
}
