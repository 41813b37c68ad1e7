use std::{cmp::min, time::Duration};

use super::{
    Answer, Event, Failure, Reply, Request, SILENT, Sharing, Step, Terms, Wake,
    bounds::{Again, Background, Silence},
};
use crate::{ErrorKind, Moment, Outcome, Released};

/// The decisions of one attempt, and all that it remembers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquisition {
    pub(crate) terms: Terms,
    pub(super) phase: Phase,
    /// The moment for which the attempt waits.
    pub(super) until: Moment,
    /// The silence of the service: requests are under way or have failed, and none was answered
    /// since.
    pub(super) silence: Option<Silence>,
    /// A copy of a request to acquire may arrive later.
    pub(super) copy: bool,
    /// The service may have something of this attempt: a place, an offer, a lease.
    pub(super) place: bool,
    /// A copy of the release had no answer.
    pub(super) release_lost: bool,
    /// Somebody else had the lease at the first look.
    pub(super) waited: bool,
    /// A wake-up that arrived while something else was under way.
    pub(super) notice: Option<Wake>,
    /// No caller waits any more.
    pub(super) background: Option<Background>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    New,
    /// A request is under way.
    Asking {
        request: Request,
        then: Then,
    },
    /// The attempt waits for others.
    Resting,
    /// The service is silent. This request is sent again after the pause, unless the pause is the
    /// last.
    Pausing {
        request: Request,
        last: bool,
        then: Then,
        failure: Failure,
    },
    /// The caller has the lease.
    Holding,
    /// The caller has given the lease back, and does not know yet whether it has ended.
    Releasing,
    /// The caller has another answer.
    Ended,
}

/// The answer to the caller after a cancel or a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Then {
    Clean,
    Held(Duration),
    ShutDown,
    /// The caller releases the lease. `held`: the caller has not seen that the lease is lost.
    Released {
        held: bool,
    },
}

impl Acquisition {
    /// An attempt of which nothing has happened yet.
    #[must_use]
    pub const fn new(terms: Terms) -> Self {
        Self {
            terms,
            phase: Phase::New,
            until: Moment::NEVER,
            silence: None,
            copy: false,
            place: false,
            release_lost: false,
            waited: false,
            notice: None,
            background: None,
        }
    }

    /// An attempt whose requests another attempt sends. It has to be cancelled unless the other
    /// attempt knows that nothing is left.
    #[must_use]
    pub(crate) const fn asked_elsewhere(terms: Terms) -> Self {
        let mut attempt = Self::new(terms);
        (attempt.phase, attempt.place) = (Phase::Ended, true);
        attempt
    }

    /// The next attempt after a grant that arrived too late. It has another holder.
    #[must_use]
    pub(crate) fn afresh(&self) -> Self {
        let mut terms = self.terms.clone();
        terms.late_grants = terms.late_grants.map(|late| late + 1);
        Self::new(terms)
    }

    /// Whether anything is left that has to be given back.
    #[must_use]
    pub fn owes(&self) -> bool {
        matches!(self.phase, Phase::Holding | Phase::Releasing)
            || self.is_looking()
            || !self.is_clean()
    }

    /// Whether no request of this lease can arrive later, and no other guard has the lease. Then
    /// the release need not be remembered.
    #[must_use]
    pub fn needs_no_tombstone(&self) -> bool {
        self.terms.sharing == Sharing::Alone && !self.copy
    }

    /// The lease goes on without its guard, or has been given back by somebody else.
    pub(crate) const fn forget(&mut self) {
        (self.phase, self.until) = (Phase::Ended, Moment::NEVER);
        (self.copy, self.place) = (false, false);
    }

    /// Decides what follows an event that happened `now`.
    pub fn on(&mut self, event: Event, now: Moment) -> Step {
        #[cfg(feature = "test-util")]
        let phase = super::record::of_phase(self);
        let step = self.decide(event, now);
        #[cfg(feature = "test-util")]
        super::record::note(phase, event, step, self);
        step
    }

    fn decide(&mut self, event: Event, now: Moment) -> Step {
        match event {
            Event::Started { hears } => self.look(hears, now),
            Event::Replied { reply, copied } => self.replied(reply, copied, now),
            Event::Woken(wake) => self.woken(wake, now),
            Event::Due => self.due(now),
            Event::Release { held } => self.send(self.release(), Then::Released { held }, now),
            Event::GiveUp => self.give_back(now),
            Event::Gone => {
                self.background = Some(Background::begin(&self.terms, now));
                self.give_back(now)
            }
            Event::Closed => self.close(now),
        }
    }

    pub(super) const fn is_clean(&self) -> bool {
        !self.copy && !self.place
    }

    pub(super) const fn is_looking(&self) -> bool {
        match self.phase {
            Phase::Asking { request, .. } => matches!(request, Request::Look { .. }),
            _ => false,
        }
    }

    pub(super) fn send(&mut self, request: Request, then: Then, now: Moment) -> Step {
        // The answer to the request that is under way is not waited for any more.
        self.copy |= self.is_looking();
        self.until = match self.background {
            Some(_) => Moment::NEVER,
            None => {
                let silence = *self.silence.get_or_insert(Silence::since(now));
                self.terms.answer_by(request, silence, now)
            }
        };
        self.phase = Phase::Asking { request, then };
        Step::Send {
            request,
            until: self.until,
        }
    }

    /// Waits for others until this moment, unless a wake-up has come already.
    pub(super) fn rest(&mut self, until: Moment, now: Moment) -> Step {
        self.phase = Phase::Resting;
        self.until = min(until, self.terms.wait.limit());
        match self.notice.take() {
            Some(wake) => self.woken(wake, now),
            None => self.wait(),
        }
    }

    /// Sends a request again, or ends with its failure.
    fn pause(
        &mut self,
        request: Request,
        again: Again,
        (then, failure): (Then, Failure),
        now: Moment,
    ) -> Step {
        let (Again::At(until) | Again::Not(until)) = again;
        self.phase = Phase::Pausing {
            request,
            last: again == Again::Not(until),
            then,
            failure,
        };
        self.until = until;
        match until <= now {
            true => self.due(now),
            false => self.wait(),
        }
    }

    pub(super) const fn answer(&mut self, answer: Answer) -> Step {
        self.phase = match answer {
            Answer::Granted(_) => Phase::Holding,
            _ => Phase::Ended,
        };
        (self.until, self.silence) = (Moment::NEVER, None);
        Step::Answer(answer)
    }

    /// Ends with the failure of a request. Earlier requests of the attempt may have left something,
    /// although this one did not take effect.
    pub(super) const fn fail(&mut self, failure: Failure) -> Step {
        self.answer(Answer::Failed(failure.unknown_if(!self.is_clean())))
    }

    /// Goes on waiting.
    pub(super) const fn wait(&self) -> Step {
        Step::Wait { until: self.until }
    }

    fn replied(&mut self, reply: Reply, copied: bool, now: Moment) -> Step {
        let Phase::Asking { request, then, .. } = self.phase else {
            return self.wait();
        };
        // No request is under way any more.
        self.phase = Phase::Resting;
        self.may_come_later(request, copied);
        if !matches!(reply, Reply::Failed(_)) {
            self.silence = None;
        }
        match reply {
            Reply::Failed(failure) => self.failed(request, then, failure, now),
            Reply::Granted(grant) => self.granted(grant, now),
            Reply::Offered(offer) => self.offered(offer, now),
            Reply::Held { left } => self.held(request, left, now),
            Reply::Queued { left, look_again } => self.queued(request, left, look_again, now),
            Reply::Gone => self.offer_is_gone(now),
            Reply::Released(released) => self.released(released, then, now),
            Reply::Cancelled => self.cancelled(then),
        }
    }

    /// Notes whether a copy of this request may arrive later.
    const fn may_come_later(&mut self, request: Request, may: bool) {
        match request {
            Request::Look { .. } => self.copy |= may,
            Request::Release { .. } => self.release_lost |= may,
            Request::Confirm(_) | Request::Cancel => {}
        }
    }

    /// A request failed: it is sent again, or the caller gets the error.
    fn failed(&mut self, request: Request, then: Then, failure: Failure, now: Moment) -> Step {
        self.may_come_later(request, failure.outcome == Outcome::Unknown);
        if let Some(background) = &mut self.background {
            return match background.again(&self.terms, now) {
                Some(again) => self.pause(request, Again::At(again), (then, failure), now),
                None => {
                    self.forget();
                    Step::Answer(Answer::Abandoned)
                }
            };
        }
        if failure.kind != ErrorKind::Unavailable {
            self.silence = None;
            return self.refused(request, then, failure, now);
        }
        let silence = self.silence.get_or_insert(Silence::since(now));
        silence.failed = silence.failed.saturating_add(1);
        let silence = *silence;
        match request {
            // The next look shows whether the offer was confirmed.
            Request::Confirm(_) => return self.look(true, now),
            // The caller waits for another answer, which is known already.
            Request::Cancel if then != Then::Clean => {
                return self.not_cancelled(then, failure.kind);
            }
            _ => {}
        }
        let again = self.terms.again(request, silence, now);
        self.pause(request, again, (then, failure), now)
    }

    /// A request has failed, and is not sent again.
    fn refused(&mut self, request: Request, then: Then, failure: Failure, now: Moment) -> Step {
        match (request, self.terms.late_grants) {
            // The answer with the grant was lost, and the lease has ended since: only we know this
            // holder, and we have released nothing.
            (Request::Look { .. }, Some(late))
                if failure.kind == ErrorKind::Released && self.terms.sharing == Sharing::Alone =>
            {
                self.place = true;
                self.late(late, now)
            }
            (Request::Look { .. }, _) => self.fail(failure),
            (Request::Confirm(_) | Request::Cancel, _) => self.not_cancelled(then, failure.kind),
            (Request::Release { .. }, _) => self.release_failed(failure),
        }
    }

    fn due(&mut self, now: Moment) -> Step {
        if now < self.until {
            return self.wait();
        }
        match self.phase {
            // This process was paused. The answer may have come during the pause.
            Phase::Asking { .. } if now.since(self.until) > self.terms.bounds.grace => {
                self.until = now + self.terms.bounds.grace;
                self.wait()
            }
            Phase::Asking { request, then } => {
                self.may_come_later(request, true);
                self.refused(request, then, SILENT, now)
            }
            Phase::Resting => match self.silence {
                Some(silence) if now >= self.terms.silent_until(silence) => self.fail(SILENT),
                _ => self.look(true, now),
            },
            Phase::Pausing {
                request,
                last,
                then,
                failure,
            } => match last {
                true => self.refused(request, then, failure, now),
                false => self.send(self.still(request, now), then, now),
            },
            _ => self.wait(),
        }
    }

    /// The manager shuts down.
    fn close(&mut self, now: Moment) -> Step {
        self.copy |= self.is_looking();
        match self.is_clean() {
            true => self.answer(Then::ShutDown.answer()),
            false => self.send(Request::Cancel, Then::ShutDown, now),
        }
    }
}

impl Then {
    pub(super) const fn answer(self) -> Answer {
        match self {
            Self::Clean => Answer::Clean,
            Self::Held(left) => Answer::Held { left },
            Self::ShutDown => Answer::Failed(Failure {
                kind: ErrorKind::ShutDown,
                outcome: Outcome::NotApplied,
            }),
            Self::Released { held: true } => Answer::Released(Released::Released),
            Self::Released { held: false } => Answer::Released(Released::NotHolder),
        }
    }
}
