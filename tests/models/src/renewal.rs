//! When a lease ends that is renewed for times of several lengths, on a server whose clock may be
//! set back or forward: Redis, and each node of Redlock.
//!
//! A holder may rely on its lease for the promised time, whatever length others ask for later.
//! The server knows the end of a lease as a time to live, which a clock that is set back makes
//! longer. No holder was promised this extra time, and the next renewal takes it back.
//!
//! Requests may be late or come in twice: a renewal of any length may come in at any time. Time is
//! a few steps, and a lease is there or has ended; the next grant is part of another model.

mod tests;

use stateright::{Model, Property};

/// One rule left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A renewal sets the end anew, wherever the end was.
    SetsTheEndAnew,
    /// A renewal never brings the end nearer, wherever the end is.
    OnlyLater,
    /// The server keeps the length that was asked for last, and not the longest length.
    KeepsTheLast,
}

/// The model: how long a lease may be, how often the clock is set, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Renewal {
    /// The lengths that are asked for, in steps.
    lengths: &'static [u8],
    /// How often the clock is set back.
    back: u8,
    /// How often the clock is set forward.
    forward: u8,
    flaw: Option<Flaw>,
}

flawed!(Renewal);

/// Everything there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The time left of the lease, by the clock of the server.
    left: u8,
    /// The longest time that a holder was promised, as the server has kept it.
    longest: u8,
    /// The longest time that was really asked for.
    asked_for: u8,
    /// For how long a holder relies on the lease.
    relied_on: u8,
    back: u8,
    forward: u8,
    was_set_forward: bool,
    was_just_renewed: bool,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Time goes by.
    Pass,
    /// The lease is renewed to this length.
    Renew(u8),
    /// The clock of the server is set back by so much.
    SetBack(u8),
    /// The clock of the server is set forward by so much.
    SetForward(u8),
}

impl Renewal {
    /// As it is built.
    pub(crate) const fn as_built() -> Self {
        Self {
            lengths: &[2, 3, 5],
            back: 2,
            forward: 1,
            flaw: None,
        }
    }

    /// The server gets a renewal to this length.
    fn renew(&self, state: &mut State, length: u8) {
        state.longest = if self.is(Flaw::KeepsTheLast) {
            length
        } else {
            std::cmp::max(state.longest, length)
        };
        // More time is left than a holder was promised only if the clock was set back.
        let kept = match self.flaw {
            Some(Flaw::SetsTheEndAnew) => 0,
            Some(Flaw::OnlyLater) => state.left,
            _ => std::cmp::min(state.left, state.longest),
        };
        state.left = std::cmp::max(kept, length);
        state.asked_for = std::cmp::max(state.asked_for, length);
        state.relied_on = std::cmp::max(state.relied_on, length);
    }
}

impl Model for Renewal {
    type State = State;
    type Action = Action;

    /// A lease of each length was granted.
    fn init_states(&self) -> Vec<State> {
        let granted = |&length: &u8| State {
            left: length,
            longest: length,
            asked_for: length,
            relied_on: length,
            back: self.back,
            forward: self.forward,
            was_set_forward: false,
            was_just_renewed: false,
        };
        self.lengths.iter().map(granted).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.left == 0 {
            return;
        }
        actions.push(Action::Pass);
        actions.extend(self.lengths.iter().copied().map(Action::Renew));
        if state.back > 0 {
            actions.extend([1, 4].map(Action::SetBack));
        }
        if state.forward > 0 {
            actions.extend([1, 4].map(Action::SetForward));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        next.was_just_renewed = false;
        match action {
            Action::Pass => {
                next.left -= 1;
                next.relied_on = next.relied_on.saturating_sub(1);
            }
            Action::Renew(length) => {
                self.renew(&mut next, length);
                next.was_just_renewed = true;
            }
            Action::SetBack(by) => {
                next.left += by;
                next.back -= 1;
            }
            Action::SetForward(by) => {
                next.left = next.left.saturating_sub(by);
                next.forward -= 1;
                next.was_set_forward = true;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(
                "no holder relies on a lease that has ended",
                |_, state: &State| state.was_set_forward || state.relied_on <= state.left,
            ),
            Property::always("a renewal mends", |_, state: &State| {
                !state.was_just_renewed || state.left <= state.asked_for
            }),
            Property::sometimes("the clock was set back", |_, state: &State| {
                state.left > state.asked_for
            }),
            Property::sometimes("it ends", |_, state: &State| state.left == 0),
        ]
    }
}
