//! Taking in a node that lost its state, or the end of its data. Its old data is deleted first.
//!
//! A healer *looks* at the node, *marks* it as being cleared, with a number that the node draws,
//! *deletes* its data and then takes it *in*, in a new incarnation. Two healers do so at the same
//! time, either may be killed, and their requests may arrive late. A mark compares the marker that
//! was seen; a delete compares the number of its own clearing. In its new incarnation the node is
//! given counters, which no healer may delete.

mod tests;

use stateright::{Model, Property};

/// How many clients heal the node at the same time.
const HEALERS: usize = 2;

/// One rule of taking a node in is left out. The model must find each of these flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A delete does not say which clearing it belongs to.
    DeleteNamesNoClearing,
    /// The node is taken in before its old data is known to be deleted.
    DeleteIsNotAwaited,
}

/// The model: how often the node loses its state meanwhile, and which rule is left out.
#[derive(Clone, Debug)]
pub(crate) struct Clearing {
    losses: u8,
    flaw: Option<Flaw>,
}

flawed!(Clearing);

/// Everything there is at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    marker: Marker,
    /// Whether there are counters of an incarnation that is over.
    has_old: bool,
    /// Whether there are counters of this incarnation.
    has_new: bool,
    healers: [Healer; HEALERS],
    /// The numbers that the node has drawn.
    drawn: u8,
    losses: u8,
    deleted_new: bool,
    served_old: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Marker {
    Nothing,
    /// The server was started again, and may have lost the end of its data.
    Restarted,
    Clearing(u8),
    Serves(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Healer {
    Begins,
    Looked(Marker),
    /// The number of its clearing, and whether its delete was answered.
    Marked {
        number: u8,
        deleted: bool,
    },
    /// The healer is done, or was killed or refused. A delete of this clearing may still be under
    /// way.
    Over(Option<u8>),
}

/// One step of a healer, or at the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Looks at the node.
    Look(usize),
    /// Marks the node as being cleared, if it is unchanged since the look.
    Mark(usize),
    /// A delete arrives and is answered.
    Delete(usize),
    /// A healer is killed.
    Kill(usize),
    /// A delete arrives when its answer is not awaited any more.
    DeleteLate(usize),
    /// The node is taken in.
    TakeIn(usize),
    /// The node gets a counter.
    Seed,
    /// The node loses its state.
    Lose,
}

impl Clearing {
    /// Two healers at once, and the node loses its state once more.
    pub(crate) const fn two_at_once() -> Self {
        Self {
            losses: 1,
            flaw: None,
        }
    }

    /// Returns whether the delete was let through.
    fn delete(&self, state: &mut State, number: u8) -> bool {
        let lets_through =
            state.marker == Marker::Clearing(number) || self.is(Flaw::DeleteNamesNoClearing);
        if lets_through {
            state.deleted_new |= state.has_new;
            (state.has_old, state.has_new) = (false, false);
        }
        lets_through
    }
}

impl State {
    fn draw(&mut self) -> u8 {
        self.drawn += 1;
        self.drawn
    }

    fn mark(&mut self, healer: usize, seen: Marker) {
        self.healers[healer] = if self.marker == seen {
            let number = self.draw();
            self.marker = Marker::Clearing(number);
            let deleted = false;
            Healer::Marked { number, deleted }
        } else {
            Healer::Over(None)
        };
    }

    fn take_in(&mut self, healer: usize, number: u8) {
        if self.marker == Marker::Clearing(number) {
            self.marker = Marker::Serves(self.draw());
            self.served_old |= self.has_old;
        }
        self.healers[healer] = Healer::Over(Some(number));
    }
}

impl Model for Clearing {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let begin = |marker| State {
            marker,
            has_old: true,
            has_new: false,
            healers: [Healer::Begins; HEALERS],
            drawn: 0,
            losses: 0,
            deleted_new: false,
            served_old: false,
        };
        [Marker::Nothing, Marker::Restarted].map(begin).to_vec()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (index, healer) in state.healers.iter().enumerate() {
            match *healer {
                Healer::Begins => actions.push(Action::Look(index)),
                Healer::Looked(_) => actions.push(Action::Mark(index)),
                Healer::Marked { deleted, .. } => {
                    actions.extend([Action::Delete(index), Action::Kill(index)]);
                    if deleted || self.is(Flaw::DeleteIsNotAwaited) {
                        actions.push(Action::TakeIn(index));
                    }
                }
                Healer::Over(Some(_)) => actions.push(Action::DeleteLate(index)),
                Healer::Over(None) => {}
            }
        }
        if matches!(state.marker, Marker::Serves(_)) && !state.has_new {
            actions.push(Action::Seed);
        }
        if state.losses < self.losses {
            actions.push(Action::Lose);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Look(index) => {
                state.healers[index] = match state.marker {
                    // The node is healed already.
                    Marker::Serves(_) => Healer::Over(None),
                    marker => Healer::Looked(marker),
                };
            }
            Action::Mark(index) => {
                let Healer::Looked(seen) = state.healers[index] else {
                    return None;
                };
                state.mark(index, seen);
            }
            Action::Delete(index) => {
                let Healer::Marked { number, .. } = state.healers[index] else {
                    return None;
                };
                let deleted = true;
                state.healers[index] = match self.delete(&mut state, number) {
                    true => Healer::Marked { number, deleted },
                    false => Healer::Over(None),
                };
            }
            Action::Kill(index) => {
                let Healer::Marked { number, .. } = state.healers[index] else {
                    return None;
                };
                state.healers[index] = Healer::Over(Some(number));
            }
            Action::DeleteLate(index) => {
                let Healer::Over(Some(number)) = state.healers[index] else {
                    return None;
                };
                self.delete(&mut state, number);
                state.healers[index] = Healer::Over(None);
            }
            Action::TakeIn(index) => {
                let Healer::Marked { number, .. } = state.healers[index] else {
                    return None;
                };
                state.take_in(index, number);
            }
            Action::Seed => state.has_new = true,
            Action::Lose => {
                state.losses += 1;
                state.marker = Marker::Nothing;
                (state.has_old, state.has_new) = (false, false);
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no new counter is deleted", |_, state: &State| {
                !state.deleted_new
            }),
            Property::always("nothing old is served", |_, state: &State| {
                !state.served_old
            }),
            Property::sometimes("healed, and the other has stopped", |_, state: &State| {
                let stopped = state.healers.contains(&Healer::Over(None));
                state.has_new && stopped && state.losses > 0
            }),
        ]
    }
}
