use std::{num::NonZeroU32, sync::Arc, time::Duration};

use foldhash::HashMap;
use tokio::sync::{Notify, oneshot};

use super::{
    debt::Debt,
    ended::{End, Ended},
    line::{Duty, Line},
    tenure::Asking,
    waiters::{Answer, Arrival, Waiter},
};
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, Error, ErrorKind, FencingToken, HolderView, Inspection,
    Moment, Operation, Released, RenewRequest, Renewed, ResourceName, Sequencer, Upkeep, Wait,
};

/// The waiters, tenures and local holders of a process.
#[derive(Debug)]
pub(super) struct Lines {
    /// The kind of lock service, which errors name.
    service: &'static str,
    /// How many grants in a row may stay in this process.
    passes: NonZeroU32,
    lines: HashMap<ResourceName, Line>,
    ended: Ended,
    /// The arrival of the next waiter.
    next: Arrival,
    purge_at: usize,
}

/// The result of a request to acquire.
#[derive(Debug)]
pub(super) enum Entry {
    /// The cohort does not handle it: ask the service as if there were no cohort.
    Straight,
    Answered(Answer),
    InLine(Place),
}

/// A place in line.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) ticket: Ticket,
    /// The answer arrives here.
    pub(super) answer: oneshot::Receiver<Answer>,
    /// Rings when there may be something to do for the line.
    pub(super) bell: Arc<Notify>,
}

/// The identity of a waiter with a place in line.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    pub(super) attempt: AttemptRef,
    arrival: Arrival,
}

/// The result of a request to release.
#[derive(Debug)]
pub(super) enum Release {
    Straight,
    Answered(Released),
    /// The caller has to end the tenure. The service's answer to that is the answer.
    Owed(Debt),
}

/// The result of a request to renew.
#[derive(Debug)]
pub(super) enum Renewal {
    Straight,
    NotHolder,
    Tenure(TenureRenewal),
}

/// The renewal of a tenure on behalf of its local holder.
#[derive(Clone, Debug)]
pub(super) struct TenureRenewal {
    pub(super) request: RenewRequest,
    local: Sequencer,
    in_line_before: Arrival,
}

/// Idle resources are purged when this many are remembered, and then whenever their number has
/// doubled.
const PURGE_MIN: usize = 1024;

impl Lines {
    pub(super) fn new(service: &'static str, passes: NonZeroU32) -> Self {
        Self {
            service,
            passes,
            lines: HashMap::default(),
            ended: Ended::default(),
            next: Arrival::default(),
            purge_at: PURGE_MIN,
        }
    }

    /// Lets a request into the line, unless it can be answered at once or the cohort does not
    /// handle it.
    pub(super) fn enter(&mut self, request: &AcquireRequest, now: Moment) -> Entry {
        if !may_join(request) {
            return Entry::Straight;
        }
        let AttemptRef {
            resource,
            holder,
            id,
        } = &request.attempt;
        self.expire(resource, now);
        if self.ended.forbids(&request.attempt) {
            return self.refuse(ErrorKind::Released, resource);
        }
        if let Some(line) = self.lines.get_mut(resource).filter(|line| !line.is_idle()) {
            if let Some(grant) = line.replay(*holder, *id) {
                return Entry::Answered(Ok(Attempt::Granted(grant)));
            }
            if request.wait == Wait::Never {
                // The service may know of an end of the tenure that we do not know of yet. But it
                // must not be asked for an acquisition that waits here already.
                if !line.waiters().has(*holder) {
                    return Entry::Straight;
                }
                let left = line.held().map(|(tenure, _)| tenure.lease.deadline());
                let retry_after = left.unwrap_or_default().since(now);
                return Entry::Answered(Ok(Attempt::Held { retry_after }));
            }
            let waiting = line.waiters().len();
            if request
                .max_waiters
                .is_some_and(|max| waiting >= max as usize)
            {
                return self.refuse(ErrorKind::QueueFull, resource);
            }
        }
        Entry::InLine(self.enqueue(request, now))
    }

    /// The duty of this waiter.
    pub(super) fn duty(&mut self, ticket: &Ticket, now: Moment) -> Duty {
        self.expire(&ticket.attempt.resource, now);
        match self.lines.get_mut(&ticket.attempt.resource) {
            Some(line) => line.duty(ticket.arrival, self.passes, self.next),
            None => Duty::None,
        }
    }

    pub(super) fn is_asking_for(&self, tenure: &AttemptRef) -> bool {
        let line = self.lines.get(&tenure.resource);
        line.is_some_and(|line| line.is_asking_for(tenure.holder))
    }

    /// The service has answered the request for a tenure.
    pub(super) fn answered(&mut self, asked: &Asking, answer: Answer, now: Moment) {
        let resource = &asked.request.attempt.resource;
        if let Some(line) = self.lines.get_mut(resource) {
            line.answered(asked.tenure(), answer, now);
        }
        self.tidy(resource);
    }

    /// A waiter gives up its place. If it has the lock already, it keeps it until it is cancelled.
    pub(super) fn leave(&mut self, ticket: &Ticket, now: Moment) {
        let AttemptRef {
            resource, holder, ..
        } = &ticket.attempt;
        if let Some(line) = self.lines.get_mut(resource) {
            line.leave(ticket.arrival, now);
            let mut held = line.held().into_iter();
            if held.any(|(_, local)| local.holder == *holder) {
                return;
            }
        }
        self.ended.attempt(&ticket.attempt, End::Left, now);
        self.tidy(resource);
    }

    /// How long the present tenure lasts unless it is renewed.
    pub(super) fn time_left(&self, resource: &ResourceName, now: Moment) -> Option<Duration> {
        let (tenure, _) = self.lines.get(resource)?.held()?;
        Some(tenure.lease.deadline().since(now))
    }

    /// Decides how to handle a renewal.
    pub(super) fn renewal(&mut self, request: &RenewRequest, now: Moment) -> Renewal {
        let local = &request.sequencer;
        self.expire(local.resource(), now);
        let line = self.lines.get_mut(local.resource());
        if let Some((tenure, holder)) = line.and_then(Line::held_mut)
            && holder.is(local)
        {
            tenure.renewing(request.ttl);
            return Renewal::Tenure(TenureRenewal {
                request: RenewRequest::new(tenure.sequencer(local), request.ttl),
                local: local.clone(),
                in_line_before: self.next,
            });
        }
        match self.ended.how(local.resource(), local.holder()) {
            Some(_) => Renewal::NotHolder,
            None => Renewal::Straight,
        }
    }

    /// A renewal of a tenure was answered. Returns the answer for its local holder, which may have
    /// passed the lock on meanwhile.
    pub(super) fn renewed(
        &mut self,
        renewal: &TenureRenewal,
        answer: Renewed,
        now: Moment,
    ) -> Renewed {
        let (tenure, local) = (&renewal.request.sequencer, &renewal.local);
        let Some(line) = self.lines.get_mut(tenure.resource()) else {
            return Renewed::NotHolder;
        };
        if let Some(lost) = line.renewed(tenure.holder(), answer, renewal.in_line_before, now) {
            self.ended
                .acquisition(tenure.resource(), lost.holder, End::Over, now);
        }
        match line.held() {
            Some((_, holder)) if holder.is(local) => answer,
            _ => Renewed::NotHolder,
        }
    }

    /// Decides how to handle a release.
    pub(super) fn release(&mut self, lease: &Sequencer, now: Moment) -> Release {
        if let Some(line) = self.lines.get_mut(lease.resource()) {
            if line.held().is_some_and(|(_, local)| local.is(lease)) {
                let end = End::Released(lease.token());
                self.ended
                    .acquisition(lease.resource(), lease.holder(), end, now);
                line.release(lease, now);
            }
            if let Some(debt) = line.debts.take_up_release(lease) {
                return Release::Owed(debt);
            }
        }
        match self.ended.how(lease.resource(), lease.holder()) {
            Some(End::Released(token)) if token == lease.token() => {
                Release::Answered(Released::Released)
            }
            Some(_) => Release::Answered(Released::NotHolder),
            None => Release::Straight,
        }
    }

    /// Ends an attempt; false if it was never seen here, so that the service has to be asked, each
    /// time anew.
    pub(super) fn cancel(&mut self, attempt: &AttemptRef, now: Moment) -> bool {
        let AttemptRef {
            resource,
            holder,
            id,
        } = attempt;
        let mut known = self.ended.knows(attempt);
        if let Some(line) = self.lines.get_mut(resource) {
            known |= line
                .held()
                .is_some_and(|(_, local)| local.holder == *holder);
            known |= line.cancel_waiting(*holder, *id, now);
            line.cancel_held(*holder, *id, now);
        }
        let end = if known {
            End::Over
        } else {
            End::CancelledUnseen
        };
        self.ended.attempt(attempt, end, now);
        self.tidy(resource);
        known
    }

    /// The unpaid debts for this resource: the caller pays them from here on.
    pub(super) fn take_up_debts(&mut self, resource: &ResourceName) -> Vec<Debt> {
        let line = self.lines.get_mut(resource);
        line.map(|line| line.debts.take_up()).unwrap_or_default()
    }

    /// A call has paid a debt that it took up, or has given up.
    pub(super) fn stop_paying(&mut self, debt: &Debt) {
        if let Some(line) = self.lines.get_mut(&debt.tenure.resource) {
            line.debts.stop_paying(debt);
        }
    }

    /// A debt is paid. If its tenure was already gone, its last holder had lost it.
    pub(super) fn paid(&mut self, debt: &Debt, answer: Released, now: Moment) {
        if let (Some(release), Released::NotHolder) = (&debt.release, answer) {
            let lost = release.local.holder();
            self.ended
                .acquisition(&debt.tenure.resource, lost, End::Over, now);
        }
        let resource = &debt.tenure.resource;
        if let Some(line) = self.lines.get_mut(resource) {
            line.debts.settle(debt);
        }
        self.tidy(resource);
    }

    /// The local lease with this token is about to be ended by force: the token by which the
    /// service knows it, or `None` if it was passed on since.
    ///
    /// Its tenure may end at any moment from here on, so it is not passed on any more.
    pub(super) fn forcing(
        &mut self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Option<FencingToken> {
        let line = self.lines.get_mut(resource);
        match line.and_then(Line::held_mut) {
            Some((tenure, local)) if local.token == token => {
                tenure.stop_passing();
                Some(tenure.first)
            }
            Some((tenure, _)) if tenure.first == token => None,
            _ => Some(token),
        }
    }

    /// The service has forcibly ended the lease with this token.
    pub(super) fn forced(&mut self, resource: &ResourceName, first: FencingToken, now: Moment) {
        let Some(line) = self.lines.get_mut(resource) else {
            return;
        };
        if line.held().is_some_and(|(tenure, _)| tenure.first == first)
            && let Some(lost) = line.lose(now)
        {
            self.ended
                .acquisition(resource, lost.holder, End::Over, now);
        }
    }

    /// Corrects an inspection by what this process knows better than the service: who has the lock
    /// of a tenure, and how many wait for it here.
    pub(super) fn shown(&self, resource: &ResourceName, mut seen: Inspection) -> Inspection {
        let Some(line) = self.lines.get(resource) else {
            return seen;
        };
        if let (Some((tenure, local)), Some(view)) = (line.held(), &seen.holder)
            && view.fingerprint == tenure.attempt.holder.fingerprint()
        {
            let local_view = HolderView::new(local.holder, local.token, view.remaining);
            seen.holder = Some(local_view.metadata(local.metadata.clone()));
        }
        if let Some(at_service) = &mut seen.waiters {
            // The service counts the whole line as one while its request waits, otherwise not at
            // all.
            let counted = u64::from(line.is_asking());
            let here = u64::try_from(line.waiters().len()).unwrap_or(u64::MAX);
            *at_service = at_service.saturating_sub(counted).saturating_add(here);
        }
        seen
    }

    fn refuse(&self, kind: ErrorKind, resource: &ResourceName) -> Entry {
        let error = Error::not_applied(kind, Operation::Acquire, self.service);
        Entry::Answered(Err(error.on(resource)))
    }

    fn enqueue(&mut self, request: &AcquireRequest, now: Moment) -> Place {
        let resource = &request.attempt.resource;
        if !self.lines.contains_key(resource) && self.lines.len() >= self.purge_at {
            self.purge(now);
        }
        let (answer, answered) = oneshot::channel();
        let bell = Arc::new(Notify::new());
        let arrival = self.next;
        self.next = Arrival(arrival.0 + 1);
        let line = self.lines.entry(resource.clone());
        let line = line.or_insert_with(|| Line::new(self.service));
        let behind = !line.is_idle();
        line.enqueue(Waiter {
            arrival,
            behind,
            request: request.clone(),
            answer,
            bell: Arc::clone(&bell),
        });
        Place {
            ticket: Ticket {
                attempt: request.attempt.clone(),
                arrival,
            },
            answer: answered,
            bell,
        }
    }

    fn expire(&mut self, resource: &ResourceName, now: Moment) {
        if let Some(line) = self.lines.get_mut(resource)
            && let Some(lost) = line.expire(now)
        {
            self.ended
                .acquisition(resource, lost.holder, End::Over, now);
        }
    }

    fn tidy(&mut self, resource: &ResourceName) {
        if self.lines.get(resource).is_some_and(Line::is_empty) {
            self.lines.remove(resource);
        }
    }

    /// Forgets tenures that ended at the service by themselves although nobody came back for them.
    fn purge(&mut self, now: Moment) {
        let ended = &mut self.ended;
        self.lines.retain(|resource, line| {
            if let Some(lost) = line.expire(now) {
                ended.acquisition(resource, lost.holder, End::Over, now);
            }
            line.debts.forget_old(now);
            !line.is_empty()
        });
        self.purge_at = std::cmp::max(self.lines.len() * 2, PURGE_MIN);
    }
}

/// Whether a request may wait in the line of the process and be passed the lock.
///
/// It may not if another process may know the acquisition, if nobody in this process keeps the
/// lease up, or if it asks for something that a shared lease cannot give it.
fn may_join(request: &AcquireRequest) -> bool {
    request.upkeep == Upkeep::Watchdog
        && request.floor.is_none()
        && request.reserve == NonZeroU32::MIN
}

#[cfg(test)]
mod tests;
