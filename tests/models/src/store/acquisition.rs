//! The steps of the lock service and of the store for an acquisition.

use super::{
    Check, Read, Store, Token,
    state::{Acquisition, Fault, Mark, Phase, Side, State, Write},
};

impl Store {
    /// Counts up, at least from the floor.
    pub(crate) fn grant(&self, state: &mut State, index: usize, side: Side, floor: Token) {
        let primary = state.primary(side);
        primary.counter = std::cmp::max(primary.counter, floor) + 1;
        primary.holder = Some(index);
        let token = primary.counter;
        state.grants += 1;
        let granted = state.grants;
        let this = &mut state.acquisitions[index];
        this.token = token;
        this.granted = granted;
        this.phase = if self.claims {
            Phase::Granted
        } else {
            Phase::Acquired
        };
    }

    /// Acquire returns when its token is claimed.
    pub(crate) fn claim(&self, state: &mut State, index: usize) {
        let token = state.acquisitions[index].token;
        let raises = match self.check {
            // A claim moves the mark, so a greater token passes, too.
            Check::Claimed => self.passes(Check::GreaterOrOwn, state, index, token),
            check => self.passes(check, state, index, token),
        };
        if !raises {
            return state.refuse(index);
        }
        self.advance(state, index, token);
        let this = &mut state.acquisitions[index];
        this.claimed = std::cmp::max(this.claimed, Some(token));
        this.phase = match this.base {
            Some(_) if self.keeps_read => Phase::HasRead,
            _ => Phase::Acquired,
        };
    }

    pub(crate) fn read(&self, state: &mut State, index: usize) {
        let token = state.acquisitions[index].token;
        if self.read != Read::Plain && !self.passes(self.check, state, index, token) {
            return state.refuse(index);
        }
        if self.read == Read::Advancing {
            self.advance(state, index, token);
        }
        let value = state.value;
        let this = &mut state.acquisitions[index];
        this.base = Some(value);
        this.phase = Phase::HasRead;
    }

    /// Checks and writes in one transaction. Returns whether the write was accepted.
    pub(crate) fn write(&self, state: &mut State, index: usize, write: Write) -> bool {
        if !self.passes(self.check, state, index, write.token) {
            return false;
        }
        if self.compares_versions && write.base != state.value {
            return false;
        }
        if self.check != Check::Claimed {
            self.advance(state, index, write.token);
        }
        self.watch_write(state, index, write);
        state.value = write.base;
        state.value.insert(update(index, write.number));
        true
    }

    fn watch_write(&self, state: &mut State, index: usize, write: Write) {
        let granted = state.acquisitions[index].granted;
        let returned = |other: &Acquisition| {
            matches!(other.phase, Phase::Acquired | Phase::HasRead | Phase::Done)
        };
        let newer = |other: &Acquisition| other.granted > granted && returned(other);
        let late = state.acquisitions.iter().any(newer);
        state.blame(Fault::LateWrite, late);
        let others = state.acquisitions.iter().enumerate();
        let mut others = others.filter(|(other, _)| *other != index);
        let shut_out = others.any(|(_, other)| other.claimed >= Some(write.token));
        state.blame(Fault::OutOfClaimOrder, shut_out);
    }

    /// Whether this token passes the check against the mark.
    pub(crate) fn passes(&self, check: Check, state: &State, index: usize, token: Token) -> bool {
        let mark = state.mark;
        let is_own = token == mark.token && mark.holder == self.holder(index);
        match check {
            Check::Nothing => true,
            Check::NotLess => token >= mark.token,
            Check::GreaterOrOwn => token > mark.token || is_own,
            Check::Claimed => is_own,
        }
    }

    fn advance(&self, state: &mut State, index: usize, token: Token) {
        let holder = self.holder(index);
        let mark = &mut state.mark;
        if token > mark.token || mark.holder != holder {
            *mark = Mark {
                token: std::cmp::max(mark.token, token),
                holder,
            };
        }
    }

    fn holder(&self, index: usize) -> Option<usize> {
        Some(if self.shares_holder { 0 } else { index })
    }
}

/// The number of an update of the value. An acquisition makes at most two updates.
pub(crate) fn update(index: usize, number: u8) -> usize {
    2 * index + usize::from(number) - 1
}

impl Acquisition {
    /// The write of the value that was computed from the last read.
    pub(crate) fn next_write(&mut self) -> Write {
        self.writes += 1;
        Write {
            token: self.token,
            base: self.base.unwrap_or_default(),
            number: self.writes,
        }
    }
}

impl State {
    pub(crate) fn refuse(&mut self, index: usize) {
        self.acquisitions[index].phase = Phase::Refused;
        self.acquisitions[index].refused_by = self.mark.token;
    }
}
