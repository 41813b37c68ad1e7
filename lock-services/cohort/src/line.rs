use std::num::NonZeroU32;

use super::{
    debt::{Debt, Debts, LastRelease},
    tenure::{Asking, Local, Tenure},
    waiters::{Answer, Arrival, Waiter, Waiters},
};
use lock_core::{
    Attempt, AttemptId, Error, ErrorKind, Grant, Holder, Moment, Outcome, Renewed, Sequencer, Wait,
    support::LATE_GRANTS_MAX,
};

/// One resource: its waiters in this process, and the lease that the process has at the service.
///
/// A state machine without time or tasks. Waiters act for each other: the one at the head asks the
/// service for a tenure, and one of them watches the deadline of the present tenure. A waiter with
/// something new to do is told by its bell.
#[derive(Debug)]
pub(super) struct Line {
    /// The kind of lock service, which errors name.
    service: &'static str,
    waiters: Waiters,
    phase: Phase,
    /// The waiter that watches the deadline of the tenure. Nobody, if nobody waits.
    watcher: Option<Arrival>,
    pub(super) debts: Debts,
    /// How many tenures in a row were over when their grant arrived.
    late: u32,
}

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Idle,
    Asking(Asking),
    Held(Tenure, Local),
}

/// What a waiter has to do for the line.
#[derive(Debug)]
pub(super) enum Duty {
    /// Nothing, until its bell rings.
    None,
    /// Look again at this moment: the tenure may have run out.
    Watch(Moment),
    /// Pay these debts, then ask for this tenure.
    Ask(Asking, Vec<Debt>),
}

impl Line {
    pub(super) fn new(service: &'static str) -> Self {
        Self {
            service,
            waiters: Waiters::default(),
            phase: Phase::default(),
            watcher: None,
            debts: Debts::default(),
            late: 0,
        }
    }

    /// Whether nobody waits, asks or holds here.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle) && self.waiters.is_empty()
    }

    /// Whether there is nothing to remember.
    pub(super) fn is_empty(&self) -> bool {
        self.is_idle() && self.debts.is_empty()
    }

    pub(super) const fn waiters(&self) -> &Waiters {
        &self.waiters
    }

    /// The present tenure, and the task that has the lock.
    pub(super) const fn held(&self) -> Option<(&Tenure, &Local)> {
        match &self.phase {
            Phase::Held(tenure, local) => Some((tenure, local)),
            Phase::Idle | Phase::Asking(_) => None,
        }
    }

    /// The same, to change it.
    pub(super) const fn held_mut(&mut self) -> Option<(&mut Tenure, &Local)> {
        match &mut self.phase {
            Phase::Held(tenure, local) => Some((tenure, local)),
            Phase::Idle | Phase::Asking(_) => None,
        }
    }

    pub(super) const fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asking(_))
    }

    pub(super) fn is_asking_for(&self, tenure: Holder) -> bool {
        matches!(&self.phase, Phase::Asking(asking) if asking.tenure() == tenure)
    }

    pub(super) fn enqueue(&mut self, waiter: Waiter) {
        self.waiters.push(waiter);
    }

    /// The answer to an attempt of the present local holder, which relies on the lock from here on.
    pub(super) fn replay(&mut self, holder: Holder, attempt: AttemptId) -> Option<Grant> {
        match &mut self.phase {
            Phase::Held(tenure, local) if local.holder == holder => {
                if !local.attempts.contains(&attempt) {
                    local.attempts.push(attempt);
                }
                Some(Grant::new(local.token, tenure.lease))
            }
            _ => None,
        }
    }

    /// The duty of this waiter. At the head it begins to ask for a tenure if there is none.
    pub(super) fn duty(&mut self, arrival: Arrival, passes: NonZeroU32, next: Arrival) -> Duty {
        // Its answer may be under way; then it does nothing more for the line.
        if !self.waiters.contains(arrival) {
            return Duty::None;
        }
        if let Phase::Held(tenure, _) = &self.phase {
            if *self.watcher.get_or_insert(arrival) == arrival {
                return Duty::Watch(tenure.lease.deadline());
            }
            return Duty::None;
        }
        let Some(head) = self.waiters.head().filter(|head| head.arrival == arrival) else {
            return Duty::None;
        };
        let asking = match &self.phase {
            Phase::Asking(asking) => asking.clone(),
            _ => {
                let waiting = u32::try_from(self.waiters.len()).unwrap_or(u32::MAX);
                let reserve = NonZeroU32::new(waiting).unwrap_or(NonZeroU32::MIN);
                Asking::for_head(head, std::cmp::min(reserve, passes), next)
            }
        };
        self.phase = Phase::Asking(asking.clone());
        Duty::Ask(asking, self.debts.unpaid())
    }

    /// The service has answered the request for a tenure.
    pub(super) fn answered(&mut self, tenure: Holder, answer: Answer, now: Moment) {
        match std::mem::take(&mut self.phase) {
            Phase::Asking(asking) if asking.tenure() == tenure => match answer {
                Ok(Attempt::Granted(grant)) => self.begin(asking, grant, now),
                Ok(Attempt::Held { .. }) => self.tell_who_asked(&asking, &answer),
                Err(error) => self.refused(&asking, error, now),
            },
            other => self.phase = other,
        }
        self.ring_head_if_idle();
    }

    /// The local holder has finished: passes the lock on, or ends the tenure. In the second case
    /// the caller has to pay the debt.
    pub(super) fn release(&mut self, lease: &Sequencer, now: Moment) {
        if let Phase::Held(tenure, _) = std::mem::take(&mut self.phase) {
            self.hand_on(tenure, Some(lease), now);
        }
    }

    /// An attempt of the local holder gives the lock up. If no other attempt relies on it, the lock
    /// is passed on or the tenure is ended. That is no end of the acquisition: another attempt may
    /// still come.
    pub(super) fn cancel_held(&mut self, holder: Holder, attempt: AttemptId, now: Moment) {
        match std::mem::take(&mut self.phase) {
            Phase::Held(tenure, mut local) if local.holder == holder => {
                local.attempts.retain(|other| *other != attempt);
                if local.attempts.is_empty() {
                    self.hand_on(tenure, None, now);
                } else {
                    self.phase = Phase::Held(tenure, local);
                }
            }
            other => self.phase = other,
        }
    }

    /// Removes the waiter with this arrival. If nobody is left, the request for a tenure is
    /// abandoned.
    pub(super) fn leave(&mut self, arrival: Arrival, now: Moment) {
        if self.waiters.remove(arrival).is_some() {
            self.has_left(arrival, now);
        }
    }

    /// The same by attempt; false if the attempt is not waiting.
    pub(super) fn cancel_waiting(
        &mut self,
        holder: Holder,
        attempt: AttemptId,
        now: Moment,
    ) -> bool {
        let left = self.waiters.remove_attempt(holder, attempt);
        if let Some(waiter) = &left {
            self.has_left(waiter.arrival, now);
        }
        left.is_some()
    }

    /// A renewal of a tenure was answered. Waiters before `in_line_before` were in line when it was
    /// sent. Returns the local holder that has lost the lock, if any.
    pub(super) fn renewed(
        &mut self,
        tenure: Holder,
        answer: Renewed,
        in_line_before: Arrival,
        now: Moment,
    ) -> Option<Local> {
        match (&mut self.phase, answer) {
            (Phase::Held(present, _), _) if present.attempt.holder != tenure => None,
            (Phase::Held(present, _), Renewed::Renewed(lease)) => {
                present.renewed(lease, in_line_before);
                None
            }
            (Phase::Held(..), Renewed::NotHolder) => self.lose(now),
            (Phase::Idle | Phase::Asking(_), _) => None,
        }
    }

    /// Ends the tenure if its lease has run out. Returns the local holder that has lost the lock,
    /// if any.
    pub(super) fn expire(&mut self, now: Moment) -> Option<Local> {
        let (tenure, _) = self.held()?;
        if tenure.is_over(now) {
            self.lose(now)
        } else {
            None
        }
    }

    /// The lease is gone, and with it the remaining tokens. Returns the local holder that has lost
    /// it.
    pub(super) fn lose(&mut self, now: Moment) -> Option<Local> {
        match std::mem::take(&mut self.phase) {
            Phase::Held(tenure, local) => {
                self.end(tenure, None, now);
                Some(local)
            }
            other => {
                self.phase = other;
                None
            }
        }
    }

    fn begin(&mut self, asking: Asking, grant: Grant, now: Moment) {
        let tenure = Tenure::new(&asking, grant, now);
        if tenure.is_over(now) {
            self.end(tenure, None, now);
            self.was_late(&asking);
        } else {
            self.late = 0;
            self.hand_on(tenure, None, now);
        }
    }

    /// Passes the lock to the head of the line if it may have it. Otherwise ends the tenure, with
    /// the release of this local lease if there was one.
    fn hand_on(&mut self, mut tenure: Tenure, released: Option<&Sequencer>, now: Moment) {
        match self.pass(&mut tenure, now) {
            Some(local) => {
                self.phase = Phase::Held(tenure, local);
                self.appoint_watcher();
            }
            None => {
                let release = released.map(|local| LastRelease {
                    tenure: tenure.sequencer(local),
                    local: local.clone(),
                });
                self.end(tenure, release, now);
            }
        }
    }

    fn pass(&mut self, tenure: &mut Tenure, now: Moment) -> Option<Local> {
        loop {
            let head = self.waiters.head()?;
            if !tenure.may_pass_to(head, now) {
                return None;
            }
            let metadata = head.request.metadata.clone();
            let (holder, grant) = (head.holder(), tenure.grant_to(head)?);
            let mut attempts = Vec::new();
            for waiter in self.waiters.remove_all_of(holder) {
                self.forget_watcher(waiter.arrival);
                let id = waiter.request.attempt.id;
                if waiter.tell(Ok(Attempt::Granted(grant))) {
                    attempts.push(id);
                }
            }
            if !attempts.is_empty() {
                return Some(Local {
                    holder,
                    token: grant.token,
                    metadata,
                    attempts,
                });
            }
        }
    }

    /// The tenure is over for us and has to be ended at the service.
    fn end(&mut self, tenure: Tenure, release: Option<LastRelease>, now: Moment) {
        self.watcher = None;
        self.debts.owe(Debt {
            until: now + tenure.longest.get(),
            tenure: tenure.attempt,
            release,
        });
        self.ring_head_if_idle();
    }

    /// The service did not grant the tenure.
    fn refused(&mut self, asking: &Asking, error: Error, now: Moment) {
        if error.outcome() == Outcome::Unknown {
            self.abandon(asking, now);
        }
        match error.kind() {
            // It ran out before we heard of it: nobody here has ended it.
            ErrorKind::Released => self.was_late(asking),
            // The terms of the asker are wrong; the others may have better ones.
            ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::QueueFull => {
                self.tell_asker(asking, Err(error));
            }
            _ => self.tell_who_asked(asking, &Err(error)),
        }
    }

    fn was_late(&mut self, asking: &Asking) {
        self.late += 1;
        if self.late == LATE_GRANTS_MAX {
            self.late = 0;
            let error = Error::too_late(self.service).on(&asking.request.attempt.resource);
            self.tell_asker(asking, Err(error));
        }
    }

    fn abandon(&mut self, asking: &Asking, now: Moment) {
        self.debts.owe(Debt {
            tenure: asking.request.attempt.clone(),
            release: None,
            until: now + asking.request.ttl.get(),
        });
    }

    fn has_left(&mut self, arrival: Arrival, now: Moment) {
        self.forget_watcher(arrival);
        match std::mem::take(&mut self.phase) {
            Phase::Asking(asking) if self.waiters.is_empty() => self.abandon(&asking, now),
            other => self.phase = other,
        }
        self.appoint_watcher();
        match self.waiters.head() {
            Some(head) if head.arrival > arrival && self.held().is_none() => head.bell.notify_one(),
            _ => {}
        }
    }

    fn forget_watcher(&mut self, arrival: Arrival) {
        if self.watcher == Some(arrival) {
            self.watcher = None;
        }
    }

    /// The tail is appointed: it is the one that will be passed the lock last.
    fn appoint_watcher(&mut self) {
        if self.watcher.is_none()
            && self.held().is_some()
            && let Some(tail) = self.waiters.tail()
        {
            self.watcher = Some(tail.arrival);
            tail.bell.notify_one();
        }
    }

    fn ring_head_if_idle(&self) {
        if let (Phase::Idle, Some(head)) = (&self.phase, self.waiters.head()) {
            head.bell.notify_one();
        }
    }

    /// Gives the answer to the waiter on whose terms the service was asked. If that one has left
    /// the line, nobody gets the answer: the next head asks on its own terms.
    fn tell_asker(&mut self, asking: &Asking, answer: Answer) {
        self.tell_head_if(|head| head.arrival == asking.asker, answer);
    }

    fn tell_head_if(&mut self, is_meant: impl Fn(&Waiter) -> bool, answer: Answer) {
        if self.waiters.head().is_some_and(is_meant)
            && let Some(head) = self.waiters.pop()
        {
            head.tell(answer);
        }
    }

    /// Gives the answer to every waiter that the service was asked for. The answer to a single look
    /// is not given to waiters that wait: the next head asks on its own terms.
    fn tell_who_asked(&mut self, asking: &Asking, answer: &Answer) {
        if asking.request.wait == Wait::Never {
            let looks = |head: &Waiter| {
                head.request.wait == Wait::Never && head.arrival < asking.in_line_before
            };
            self.tell_head_if(looks, answer.clone());
            return;
        }
        for waiter in self.waiters.remove_before(asking.in_line_before) {
            waiter.tell(answer.clone());
        }
    }
}
