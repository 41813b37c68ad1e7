//! Whoever takes the service out of service, and puts it into service above a floor.

use super::{Action, Flaw, LIFT, Line, State, Token};

/// How far he is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Operator {
    /// Nobody grants from the next step on.
    Retire,
    /// The floor is raised with the next step, and the service is in service.
    Reinstate,
    /// Those who wait are bound. What was seen in line: who stands behind whom.
    Bind {
        least: Token,
        next: Next,
        seen: Option<Vec<(Token, Token)>>,
    },
    #[default]
    Done,
}

/// What comes when all are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Next {
    Reinstate,
    /// The floor, which comes first if it is done right.
    Raise,
    Done,
}

impl Line {
    pub(super) fn first_step(&self) -> Operator {
        if self.retires {
            Operator::Retire
        } else {
            Operator::Reinstate
        }
    }

    pub(super) fn possible_for_operator(&self, state: &State, actions: &mut Vec<Action>) {
        if state.operator != Operator::Done {
            actions.push(Action::Operate);
        }
        if let Operator::Bind {
            next: Next::Reinstate,
            ..
        } = state.operator
        {
            actions.push(Action::Skip);
        }
    }

    pub(super) fn skip(&self, state: &mut State) {
        state.operator = Operator::Reinstate;
    }

    pub(super) fn operate(&self, state: &mut State) {
        match state.operator.clone() {
            Operator::Retire => {
                state.retired = true;
                let least = state.floor + state.revision + 1;
                state.operator = self.bind(least, Next::Reinstate);
            }
            Operator::Reinstate => {
                let least = state.floor + state.revision + LIFT;
                if self.has(Flaw::BoundBeforeTheFloor) {
                    state.operator = self.bind(least, Next::Raise);
                } else {
                    raise(state, least);
                    state.operator = self.bind(least, Next::Done);
                }
            }
            Operator::Bind { least, next, seen } => self.go_on(state, least, next, seen),
            Operator::Done => {}
        }
    }

    fn bind(&self, least: Token, next: Next) -> Operator {
        // There is nobody to be bound, as far as he knows.
        let seen = self.has(Flaw::NobodyIsBound).then(Vec::new);
        Operator::Bind { least, next, seen }
    }

    fn go_on(
        &self,
        state: &mut State,
        least: Token,
        next: Next,
        seen: Option<Vec<(Token, Token)>>,
    ) {
        let Some(mut seen) = seen else {
            let seen = Some(unbound(state, least));
            state.operator = Operator::Bind { least, next, seen };
            return;
        };
        if let Some((before, waiter)) = seen.pop() {
            self.bind_one(state, least, before, waiter);
            // When he is through he looks again.
            let again = seen.is_empty() && !self.has(Flaw::BoundByOneLook);
            let seen = (!again).then_some(seen);
            state.operator = Operator::Bind { least, next, seen };
            return;
        }
        state.operator = match next {
            Next::Reinstate => Operator::Reinstate,
            Next::Raise => {
                raise(state, least);
                done(state, least)
            }
            Next::Done => done(state, least),
        };
    }

    /// Binds a place if there is still one before it.
    fn bind_one(&self, state: &mut State, least: Token, before: Token, waiter: Token) {
        let places = state.places.iter().flatten();
        let stands = places.clone().any(|place| place.created == before);
        if !stands && !self.has(Flaw::TheFirstIsBoundToo) {
            return;
        }
        let mut places = state.places.iter_mut().flatten();
        if let Some(place) = places.find(|place| place.created == waiter) {
            place.least = std::cmp::max(place.least, least);
        }
    }
}

fn raise(state: &mut State, least: Token) {
    let enough = least.saturating_sub(state.revision);
    state.floor = std::cmp::max(state.floor, enough);
    state.retired = false;
}

fn done(state: &mut State, least: Token) -> Operator {
    let holder = state.first().map(|place| place.created);
    state.promised = Some((least, holder));
    Operator::Done
}

/// Who waits and is not bound yet, each with the place before it.
fn unbound(state: &State, least: Token) -> Vec<(Token, Token)> {
    let mut places: Vec<_> = state.places.iter().flatten().copied().collect();
    places.sort_unstable_by_key(|place| place.created);
    let pairs = places.windows(2);
    let lesser = pairs.filter(|pair| pair[1].token() < least && pair[1].least < least);
    lesser
        .map(|pair| (pair[0].created, pair[1].created))
        .collect()
}
