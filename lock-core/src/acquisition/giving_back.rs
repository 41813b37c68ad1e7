//! Release, cancel, and the clean-up after a caller that has gone.

use super::{
    Acquisition, Answer, Failure, Request, SILENT, Sharing, Step,
    state::{Phase, Then},
};
use crate::{ErrorKind, Moment, Released};

impl Acquisition {
    /// Begins to give back what is left.
    pub(super) fn give_back(&mut self, now: Moment) -> Step {
        self.copy |= self.is_looking();
        self.silence = None;
        let request = match self.phase {
            // Another attempt of the same acquisition may know of the lease.
            Phase::Holding if self.terms.sharing == Sharing::Repeated => Request::Cancel,
            Phase::Holding
            | Phase::Releasing
            | Phase::Asking {
                request: Request::Release { .. },
                ..
            }
            | Phase::Pausing {
                then: Then::Released { .. },
                ..
            } => self.release(),
            _ if self.is_clean() => return self.answer(Answer::Clean),
            _ => Request::Cancel,
        };
        self.send(request, Then::Clean, now)
    }

    pub(super) fn release(&self) -> Request {
        Request::Release {
            tombstone: !self.needs_no_tombstone(),
        }
    }

    pub(super) fn released(&mut self, released: Released, then: Then, now: Moment) -> Step {
        if released == Released::Released {
            (self.copy, self.place) = (false, false);
            return self.answer(match then {
                Then::Released { .. } => Answer::Released(released),
                _ => Answer::Clean,
            });
        }
        // An earlier copy of this release may have ended the lease, and no tombstone would say so.
        let by_copy = self.release_lost && self.needs_no_tombstone();
        if by_copy && then == (Then::Released { held: true }) {
            return self.cancelled(then);
        }
        // A lease that was never confirmed still has its place in the queue.
        self.place = true;
        match then {
            Then::Released { .. } => self.answer(Answer::Released(released)),
            _ => self.send(Request::Cancel, then, now),
        }
    }

    pub(super) const fn cancelled(&mut self, then: Then) -> Step {
        (self.copy, self.place) = (false, false);
        self.answer(then.answer())
    }

    /// The caller gets an error instead of the answer that was ready, because something may be
    /// left.
    pub(super) const fn not_cancelled(&mut self, then: Then, kind: ErrorKind) -> Step {
        let kind = match then {
            Then::ShutDown => ErrorKind::ShutDown,
            _ => kind,
        };
        self.answer(Answer::Failed(Failure { kind, ..SILENT }))
    }

    /// The lease may go on.
    pub(super) const fn release_failed(&mut self, failure: Failure) -> Step {
        let step = self.answer(Answer::Failed(failure.unknown_if(self.release_lost)));
        self.phase = Phase::Releasing;
        step
    }
}
