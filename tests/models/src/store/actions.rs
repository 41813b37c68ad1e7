//! The actions that are possible, and their effects.

use super::{
    Floor, Store,
    state::{Phase, Side, State, Write},
};

/// One step of an acquisition, or of the lock service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// A server of the lock service grants.
    Grant(usize, Side),
    /// The token is claimed in the store.
    Claim(usize),
    /// The value is read.
    Read(usize),
    /// The value is written, and the writer gets the result.
    Write(usize),
    /// A write is sent, and given up before it arrives.
    GiveUp(usize),
    /// The write that was given up arrives.
    Arrive(usize, Write),
    /// The counter is raised above the mark that refused it.
    Floor(usize, Side),
    /// The replica catches up.
    Replicate,
    /// The replica takes over.
    FailOver,
}

impl Store {
    /// All actions that are possible in a state.
    pub(crate) fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        for acquisition in 0..self.acquisitions {
            self.possible_for(state, acquisition, actions);
        }
        if state.new.is_none() && self.fails_over {
            if state.replica != state.old {
                actions.push(Action::Replicate);
            }
            actions.push(Action::FailOver);
        }
    }

    fn possible_for(&self, state: &State, index: usize, actions: &mut Vec<Action>) {
        let this = &state.acquisitions[index];
        let old = (state.new.is_none() || self.splits).then_some(Side::Old);
        let sides = old.into_iter().chain(state.new.map(|_| Side::New));
        match this.phase {
            // Acquisitions are alike: they begin in the order of their numbers.
            Phase::Idle => {
                if index == 0 || state.acquisitions[index - 1].phase != Phase::Idle {
                    actions.extend(sides.map(|side| Action::Grant(index, side)));
                }
            }
            Phase::Granted => actions.push(Action::Claim(index)),
            Phase::Acquired => actions.push(Action::Read(index)),
            Phase::HasRead => {
                actions.push(Action::Write(index));
                if self.delays_write && this.writes == 0 {
                    actions.push(Action::GiveUp(index));
                }
            }
            Phase::Refused if this.floors < self.floors => {
                let may = |side: &Side| self.may_raise(state, index, *side);
                actions.extend(sides.filter(may).map(|side| Action::Floor(index, side)));
            }
            Phase::Refused | Phase::Done => {}
        }
        actions.extend(this.late.map(|write| Action::Arrive(index, write)));
    }

    /// Whether this server would raise its counter for the acquisition.
    pub(crate) fn may_raise(&self, state: &State, index: usize, side: Side) -> bool {
        let primary = match side {
            Side::Old => Some(state.old),
            Side::New => state.new,
        };
        let holds = primary.is_some_and(|primary| primary.holder == Some(index));
        match self.floor {
            Floor::Never => false,
            Floor::IfHeld => holds,
            Floor::Always => true,
        }
    }

    /// Takes one step.
    pub(crate) fn perform(&self, state: &mut State, action: Action) {
        match action {
            Action::Grant(acquisition, side) => self.grant(state, acquisition, side, 0),
            Action::Claim(acquisition) => self.claim(state, acquisition),
            Action::Read(acquisition) => self.read(state, acquisition),
            Action::Write(acquisition) => {
                let write = state.acquisitions[acquisition].next_write();
                if self.write(state, acquisition, write) {
                    state.acquisitions[acquisition].phase = Phase::Done;
                    let update = super::acquisition::update(acquisition, write.number);
                    state.acknowledged.insert(update);
                } else {
                    state.refuse(acquisition);
                }
            }
            Action::GiveUp(acquisition) => {
                let this = &mut state.acquisitions[acquisition];
                this.late = Some(this.next_write());
                this.phase = Phase::Acquired;
            }
            Action::Arrive(acquisition, write) => {
                state.acquisitions[acquisition].late = None;
                self.write(state, acquisition, write);
            }
            Action::Floor(acquisition, side) => {
                state.acquisitions[acquisition].floors += 1;
                let mark = state.acquisitions[acquisition].refused_by;
                self.grant(state, acquisition, side, mark);
            }
            Action::Replicate => state.replica = state.old,
            Action::FailOver => state.new = Some(state.replica),
        }
    }
}
