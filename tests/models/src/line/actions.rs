use super::{ACQUISITION_OF, Attempt, Broken, FIRST_RIVAL, Flaw, Line, Place, State, Token, WISH};
use crate::set::Set;

/// One step of an attempt, or of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// An attempt asks for a place, or finds the place of its acquisition.
    Enter(usize),
    /// The attempt looks which places are before its own.
    Look(usize),
    /// A notice says that the attempt is the first.
    Hear(usize),
    /// The attempt reads the notice.
    Read(usize),
    /// The attempt gives its place back for a place with a greater token.
    Leave(usize),
    /// The place is given back, but the answer is lost.
    LeaveUnheard(usize),
    /// The request of the attempt is sent again.
    Again(usize),
    /// An attempt that has a lease ends it.
    Release(usize),
    /// A lease runs out.
    Expire(usize),
}

impl Line {
    pub(super) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        for (index, attempt) in state.attempts.iter().enumerate() {
            match attempt {
                Attempt::Out if may_enter(state, index) => actions.push(Action::Enter(index)),
                Attempt::InLine { created, .. } => {
                    actions.push(Action::Look(index));
                    if self.may_hear(state, index, *created) {
                        actions.push(Action::Hear(index));
                    }
                }
                Attempt::Heard { .. } => actions.push(Action::Read(index)),
                Attempt::Leaving { .. } => {
                    actions.push(Action::Leave(index));
                    if index == 0 && !state.lost {
                        actions.push(Action::LeaveUnheard(index));
                    }
                }
                Attempt::Told { .. } => actions.push(Action::Release(index)),
                Attempt::Out | Attempt::Ended => {}
            }
            let is_asked = matches!(
                attempt,
                Attempt::InLine { .. } | Attempt::Heard { .. } | Attempt::Told { .. }
            );
            if index == 0 && is_asked && !state.again {
                actions.push(Action::Again(index));
            }
        }
        if state.expired.is_none() {
            let places = state.places.iter().enumerate();
            let present = places.filter(|(_, place)| place.is_some());
            actions.extend(present.map(|(acquisition, _)| Action::Expire(acquisition)));
        }
    }

    pub(super) fn take(&self, state: &mut State, action: Action) {
        match action {
            Action::Enter(index) => self.enter(state, index),
            Action::Look(index) => self.look(state, index),
            Action::Hear(index) => self.hear(state, index),
            Action::Read(index) => read(state, index),
            Action::Leave(index) => {
                leave(state, index);
                state.attempts[index] = self.gone(state, index);
            }
            Action::LeaveUnheard(index) => {
                state.lost = true;
                leave(state, index);
            }
            Action::Again(index) => {
                state.again = true;
                state.attempts[index] = Attempt::Out;
            }
            Action::Release(index) => {
                let of = ACQUISITION_OF[index];
                let present = state.places[of].map(|place| Attempt::Told {
                    token: place.token(),
                });
                if present == Some(state.attempts[index]) {
                    state.places[of] = None;
                }
                state.attempts[index] = Attempt::Ended;
                state.ended[of] = true;
            }
            Action::Expire(acquisition) => self.expire(state, acquisition),
        }
    }

    fn enter(&self, state: &mut State, index: usize) {
        let of = ACQUISITION_OF[index];
        if state.places[of].is_some() {
            self.join(state, index);
        } else if state.ended[of] {
            state.attempts[index] = Attempt::Ended;
        } else {
            let wish = wish_of(index);
            state.revision += 1;
            let place = Place {
                created: state.revision,
                floor: state.floor,
                least: wish,
                attempts: Set::of(index),
                wish,
            };
            state.places[of] = Some(place);
            state.attempts[index] = Attempt::InLine {
                created: place.created,
                found: false,
            };
            // The first needs no other look.
            if state.first() == Some(place) {
                self.look(state, index);
            }
        }
    }

    /// Relies on a place that is there. If the place is behind another place, no caller knows of
    /// it, and its bound rises.
    fn join(&self, state: &mut State, index: usize) {
        let (of, first, wish) = (ACQUISITION_OF[index], state.first(), wish_of(index));
        let Some(place) = &mut state.places[of] else {
            return;
        };
        let created = place.created;
        if first != Some(*place) {
            place.wish = std::cmp::max(place.wish, wish);
        }
        let is_bound = first != Some(*place) || self.is(Flaw::TheFirstIsBoundToo);
        if is_bound && !self.is(Flaw::WhoJoinsBindsNothing) {
            place.least = std::cmp::max(place.least, wish);
        }
        place.attempts.insert(index);
        state.attempts[index] = Attempt::InLine {
            created,
            found: true,
        };
    }

    fn look(&self, state: &mut State, index: usize) {
        let Attempt::InLine { created, found } = state.attempts[index] else {
            return;
        };
        let own = state.places[ACQUISITION_OF[index]];
        let Some(place) = own.filter(|place| place.created == created) else {
            state.attempts[index] = self.gone(state, index);
            return;
        };
        if state.first() != Some(place) {
            return;
        }
        let told = place.token() >= place.least
            || self.is(Flaw::WhatIsFoundWasTold) && found
            || self.is(Flaw::OthersKeepThePlace) && place.attempts.len() > 1;
        if told {
            tell(state, index, created, place.token());
        } else {
            state.attempts[index] = Attempt::Leaving { created };
        }
    }

    /// Whether the attempt may get the notice that it is the first.
    fn may_hear(&self, state: &State, index: usize, created: Token) -> bool {
        if self.is(Flaw::WhoHasNoPlaceIsToldToo) {
            return state.first().is_none_or(|first| first.created >= created);
        }
        let own = state.places[ACQUISITION_OF[index]];
        own.is_some_and(|own| own.created == created) && state.first() == own
    }

    fn hear(&self, state: &mut State, index: usize) {
        let Attempt::InLine { created, .. } = state.attempts[index] else {
            return;
        };
        let own = state.places[ACQUISITION_OF[index]].filter(|own| own.created == created);
        // Without its place the attempt relies on the token that it has known from the beginning.
        let token = match own {
            Some(own) => (own.token() >= own.least).then(|| own.token()),
            None => Some(created),
        };
        state.attempts[index] = Attempt::Heard { created, token };
    }

    /// A lease runs out. Its attempt knows this, and does not rely on a notice.
    fn expire(&self, state: &mut State, of: usize) {
        state.expired = state.places[of].take().map(|place| place.created);
        state.ended[of] = true;
        if self.is(Flaw::WhatWasHeardCounts) {
            return;
        }
        for (attempt, its) in state.attempts.iter_mut().zip(ACQUISITION_OF) {
            if let Attempt::Heard { created, .. } = *attempt
                && its == of
            {
                *attempt = Attempt::InLine {
                    created,
                    found: true,
                };
            }
        }
    }

    /// The next state of an attempt whose place is gone.
    fn gone(&self, _: &State, _: usize) -> Attempt {
        if self.is(Flaw::WhatIsGoneHasEnded) {
            Attempt::Ended
        } else {
            Attempt::Out
        }
    }
}

/// The least token that is of use to an attempt.
const fn wish_of(index: usize) -> Token {
    if index == 0 { WISH } else { 0 }
}

/// Rivals are alike: they come in the order of their numbers.
fn may_enter(state: &State, index: usize) -> bool {
    let has_come = |before: usize| state.attempts[before] != Attempt::Out;
    index <= FIRST_RIVAL || has_come(index - 1)
}

fn read(state: &mut State, index: usize) {
    if let Attempt::Heard { created, token } = state.attempts[index] {
        match token {
            Some(token) => tell(state, index, created, token),
            None => state.attempts[index] = Attempt::Leaving { created },
        }
    }
}

fn tell(state: &mut State, index: usize, created: Token, token: Token) {
    let of = ACQUISITION_OF[index];
    state.attempts[index] = Attempt::Told { token };
    let place = state.places[of].filter(|place| place.created == created);
    if place.is_some_and(|place| token < place.wish) {
        state.broken = Some(Broken::OwnFloor);
    }
    if state.expired == Some(created) {
        state.broken = Some(Broken::Gone);
    }
    if state.told_of[of] == Some(created) {
        return;
    }
    if token <= state.greatest {
        state.broken = Some(Broken::Order);
    }
    state.told_of[of] = Some(created);
    state.greatest = token;
}

/// Deletes the place if it is unchanged, and raises the floor in the same step.
fn leave(state: &mut State, index: usize) {
    let Attempt::Leaving { created } = state.attempts[index] else {
        return;
    };
    let of = ACQUISITION_OF[index];
    let Some(place) = state.places[of].filter(|place| place.created == created) else {
        return;
    };
    if state.told_of[of] == Some(created) {
        state.broken = Some(Broken::Kept);
    }
    state.places[of] = None;
    state.left_for_more = true;
    let enough: Token = place.least.saturating_sub(state.revision);
    state.floor = std::cmp::max(state.floor, enough);
}
