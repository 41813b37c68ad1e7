//! Asking for the lease, waiting for others, and what wakes the attempt.

use std::{cmp::min, time::Duration};

use super::{
    Acquisition, Answer, Request, Step, Wake,
    bounds::{LATE_GRANTS_MAX, Silence},
    state::{Phase, Then},
};
use crate::{Grant, Moment, Wait};

impl Acquisition {
    /// Looks, in the queue if there is one and the wait is not over.
    pub(super) fn look(&mut self, hears: bool, now: Moment) -> Step {
        let waits = self.terms.wait != Wait::Never && !self.terms.wait.is_over(now);
        let queue = hears && waits && self.terms.polls.is_none();
        self.send(Request::Look { queue }, Then::Clean, now)
    }

    pub(super) fn granted(&mut self, grant: Grant, now: Moment) -> Step {
        self.place = true;
        if let Some(late) = self.terms.late_grants
            && grant.lease.deadline() <= now
        {
            return self.late(late, now);
        }
        self.answer(Answer::Granted(match self.waited {
            true => grant.after_waiting(),
            false => grant,
        }))
    }

    /// The grant has ended before it arrived.
    pub(super) fn late(&mut self, late: u32, now: Moment) -> Step {
        let is_last = self.terms.wait.is_over(now) || late + 1 >= LATE_GRANTS_MAX;
        self.answer(match is_last {
            true => Answer::TooLate,
            false => Answer::Late,
        })
    }

    pub(super) fn offered(&mut self, offer: Grant, now: Moment) -> Step {
        self.place = true;
        match offer.lease.deadline() <= now {
            true => self.look(true, now),
            false => self.send(Request::Confirm(offer), Then::Clean, now),
        }
    }

    pub(super) fn offer_is_gone(&mut self, now: Moment) -> Step {
        match self.notice.take() {
            Some(wake @ (Wake::Offered(_) | Wake::Granted(_))) => self.woken_by(wake, now),
            _ => self.look(true, now),
        }
    }

    pub(super) fn held(&mut self, request: Request, left: Duration, now: Moment) -> Step {
        self.place = false;
        let pause = match self.terms.wait.is_over(now) {
            true => None,
            false if self.terms.polls.is_some() => self.terms.next_poll(),
            // No wake-up would have arrived. The attempt takes a place as soon as wake-ups arrive.
            false if request == (Request::Look { queue: false }) => Some(self.terms.bounds.channel),
            false => None,
        };
        match pause {
            Some(pause) => {
                self.waited = true;
                self.rest(now + pause, now)
            }
            // A copy that is under way could still get a lease that no caller knows of.
            None if self.copy => self.send(Request::Cancel, Then::Held(left), now),
            None => self.answer(Answer::Held { left }),
        }
    }

    pub(super) fn queued(
        &mut self,
        request: Request,
        left: Duration,
        look_again: Duration,
        now: Moment,
    ) -> Step {
        (self.place, self.waited) = (true, true);
        match self.terms.wait.is_over(now) || request == (Request::Look { queue: false }) {
            true => self.send(Request::Cancel, Then::Held(left), now),
            false => self.rest(now + look_again, now),
        }
    }

    /// The request that is sent in place of one that was put off. After the end of the wait, a look
    /// takes no place in the queue.
    pub(super) fn still(&self, request: Request, now: Moment) -> Request {
        match request {
            Request::Look { queue } => Request::Look {
                queue: queue && !self.terms.wait.is_over(now),
            },
            request => request,
        }
    }

    pub(super) fn woken(&mut self, wake: Wake, now: Moment) -> Step {
        match (self.phase, wake) {
            (Phase::Resting, Wake::Silent(since)) => {
                let silence = *self.silence.get_or_insert(Silence { since, failed: 1 });
                self.until = min(self.until, self.terms.silent_until(silence));
                self.wait()
            }
            (Phase::Resting, Wake::Heard) => {
                self.silence = None;
                self.wait()
            }
            (_, Wake::Silent(_) | Wake::Heard) => self.wait(),
            (Phase::Resting, _) => self.woken_by(wake, now),
            (Phase::Pausing { last: true, .. }, _) => self.wait(),
            (Phase::Pausing { request, then, .. }, _) => match (request, wake) {
                (Request::Look { .. }, Wake::Look) => {
                    self.send(self.still(request, now), then, now)
                }
                (Request::Look { .. }, _) => self.woken_by(wake, now),
                _ => self.wait(),
            },
            // The answer of the look that is under way may be better than an offer that has ended.
            (Phase::Asking { .. }, Wake::Offered(offer)) if offer.lease.deadline() <= now => {
                self.note(Wake::Look)
            }
            (Phase::Asking { .. }, Wake::Offered(_) | Wake::Granted(_)) if self.is_looking() => {
                self.woken_by(wake, now)
            }
            (Phase::Asking { .. }, _) => self.note(wake),
            _ => self.wait(),
        }
    }

    /// Remembers a wake-up that comes while a request is under way.
    const fn note(&mut self, wake: Wake) -> Step {
        if !matches!((wake, &self.notice), (Wake::Look, Some(_))) {
            self.notice = Some(wake);
        }
        self.wait()
    }

    fn woken_by(&mut self, wake: Wake, now: Moment) -> Step {
        let (Wake::Offered(grant) | Wake::Granted(grant)) = wake else {
            return self.look(true, now);
        };
        // The request that was under way may still arrive.
        self.copy |= self.is_looking();
        (self.waited, self.silence) = (true, None);
        match wake {
            Wake::Offered(_) => self.offered(grant, now),
            _ => self.granted(grant, now),
        }
    }
}
