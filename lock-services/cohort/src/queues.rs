use std::{num::NonZeroU32, sync::Arc, time::Duration};

use foldhash::HashMap;
use tokio::sync::{Notify, oneshot};

use super::{
    pending_release::{self, Ending, PendingRelease},
    queue::{Queue, Step},
    shared_lease::Asking,
    waiters::{Answer, Arrival, Waiter},
};
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, Error, ErrorKind, FencingToken, HolderView, Inspection,
    Moment, Released, RenewRequest, Renewed, ResourceName, Sequencer, Upkeep, Wait,
    support::{End, Tombstones},
};

/// How long a tombstone stays. Late requests come from this process.
const TOMBSTONE_TTL: Duration = Duration::from_secs(10);

/// How many there are at most. Hand-offs inside a process are fast.
const TOMBSTONES_MAX: usize = 16_384;

/// The waiters, shared leases and holders of a process. A queue is here for as long as it has a
/// driver: only its driver takes it out.
#[derive(Debug)]
pub(super) struct Queues {
    /// How many grants in a row may stay in this process.
    passes: NonZeroU32,
    queues: HashMap<ResourceName, Queue>,
    tombstones: Tombstones,
    /// The arrival of the next waiter.
    next: Arrival,
}

/// The result of a request to acquire.
#[derive(Debug)]
pub(super) enum Entry {
    /// The cohort does not handle it: ask the service as if there were no cohort.
    Direct,
    Answered(Answer),
    Queued(Place),
}

/// A place in the queue.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) ticket: Ticket,
    /// The answer arrives here.
    pub(super) answer: oneshot::Receiver<Answer>,
    /// What wakes the driver, if the queue is new and has none yet: the caller has to start it.
    pub(super) undriven: Option<Arc<Notify>>,
}

/// The identity of a waiter with a place in the queue.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    pub(super) attempt: AttemptRef,
    arrival: Arrival,
}

/// The result of a request to release.
#[derive(Debug)]
pub(super) enum Release {
    Direct,
    Answered(Released),
    /// The caller has to begin the end of the shared lease, and leave the rest to the driver.
    Begin(PendingRelease, oneshot::Receiver<pending_release::Answer>),
    /// The driver ends the shared lease once more.
    Again(oneshot::Receiver<pending_release::Answer>),
}

/// The result of a request to renew.
#[derive(Debug)]
pub(super) enum Renewal {
    Direct,
    NotHolder,
    Shared(SharedRenewal),
}

/// The renewal of a shared lease on behalf of its current holder.
#[derive(Clone, Debug)]
pub(super) struct SharedRenewal {
    pub(super) request: RenewRequest,
    current: Sequencer,
    came_before: Arrival,
}

impl Queues {
    pub(super) fn new(passes: NonZeroU32) -> Self {
        Self {
            passes,
            queues: HashMap::default(),
            tombstones: Tombstones::new(TOMBSTONE_TTL, TOMBSTONES_MAX),
            next: Arrival::default(),
        }
    }

    /// Lets a request into the queue, unless it can be answered at once or the cohort does not
    /// handle it.
    pub(super) fn enter(&mut self, request: &AcquireRequest, now: Moment) -> Entry {
        if !may_join(request) {
            return Entry::Direct;
        }
        let AttemptRef {
            resource,
            holder,
            id,
        } = &request.attempt;
        self.expire(resource, now);
        if self.tombstones.forbids(&request.attempt) {
            return self.refuse(ErrorKind::Released, resource);
        }
        if let Some(queue) = self
            .queues
            .get_mut(resource)
            .filter(|queue| !queue.is_idle())
        {
            if let Some(grant) = queue.replay(*holder, *id) {
                return Entry::Answered(Ok(Attempt::Granted(grant)));
            }
            if request.wait == Wait::Never {
                // The service may know of an end of the shared lease that we do not know of yet.
                // But it must not be asked for an acquisition that waits here already.
                if !queue.waiters().has(*holder) {
                    return Entry::Direct;
                }
                let left = queue.held().map(|(shared, _)| shared.lease.deadline());
                let retry_after = left.unwrap_or_default().since(now);
                return Entry::Answered(Ok(Attempt::Held { retry_after }));
            }
            let waiting = queue.waiters().len();
            if request
                .max_waiters
                .is_some_and(|max| waiting >= max as usize)
            {
                return self.refuse(ErrorKind::QueueFull, resource);
            }
        }
        Entry::Queued(self.enqueue(request))
    }

    /// What the driver of a queue has to do next. When nothing is left to do, the queue is gone.
    pub(super) fn next_step(&mut self, resource: &ResourceName, now: Moment) -> Step {
        self.expire(resource, now);
        let Some(queue) = self.queues.get_mut(resource) else {
            return Step::Done;
        };
        let step = queue.next_step(self.passes, self.next, now);
        if matches!(step, Step::Done) {
            self.queues.remove(resource);
        }
        step
    }

    /// Takes out a queue that has lost its driver.
    pub(super) fn remove(&mut self, resource: &ResourceName) -> Option<Queue> {
        self.queues.remove(resource)
    }

    pub(super) fn is_asking_for(&self, attempt: &AttemptRef) -> bool {
        let queue = self.queues.get(&attempt.resource);
        queue.is_some_and(|queue| queue.is_asking_for(attempt.holder))
    }

    /// The service has answered the request for a shared lease.
    pub(super) fn answered(&mut self, asked: &Asking, answer: Answer, now: Moment) {
        let resource = &asked.request.attempt.resource;
        if let Some(queue) = self.queues.get_mut(resource) {
            queue.answered(asked.holder(), answer, now);
        }
    }

    /// A waiter gives up its place. If it has the lock already, it keeps it until it is cancelled.
    pub(super) fn leave(&mut self, ticket: &Ticket, now: Moment) {
        let AttemptRef {
            resource, holder, ..
        } = &ticket.attempt;
        if let Some(queue) = self.queues.get_mut(resource) {
            queue.leave(ticket.arrival, now);
            let mut held = queue.held().into_iter();
            if held.any(|(_, current)| current.holder == *holder) {
                return;
            }
        }
        self.tombstones.attempt(&ticket.attempt, End::Left, now);
    }

    /// How long the shared lease lasts unless it is renewed.
    pub(super) fn time_left(&self, resource: &ResourceName, now: Moment) -> Option<Duration> {
        let (shared, _) = self.queues.get(resource)?.held()?;
        Some(shared.lease.deadline().since(now))
    }

    /// Decides how to handle a renewal.
    pub(super) fn renewal(&mut self, request: &RenewRequest, now: Moment) -> Renewal {
        let current = &request.sequencer;
        self.expire(current.resource(), now);
        let queue = self.queues.get_mut(current.resource());
        if let Some((shared, holder)) = queue.and_then(Queue::held_mut)
            && holder.is(current)
        {
            shared.renewing(request.ttl);
            return Renewal::Shared(SharedRenewal {
                request: RenewRequest::new(shared.sequencer(current), request.ttl),
                current: current.clone(),
                came_before: self.next,
            });
        }
        match self.tombstones.how(current.resource(), current.holder()) {
            Some(_) => Renewal::NotHolder,
            None => Renewal::Direct,
        }
    }

    /// A renewal of a shared lease was answered. Returns the answer for its holder, which may have
    /// passed the lock on meanwhile.
    pub(super) fn renewed(
        &mut self,
        renewal: &SharedRenewal,
        answer: Renewed,
        now: Moment,
    ) -> Renewed {
        let (shared, current) = (&renewal.request.sequencer, &renewal.current);
        let Some(queue) = self.queues.get_mut(shared.resource()) else {
            return Renewed::NotHolder;
        };
        if let Some(lost) = queue.renewed(shared.holder(), answer, renewal.came_before, now) {
            self.tombstones
                .acquisition(shared.resource(), lost.holder, End::Over, now);
        }
        match queue.held() {
            Some((_, holder)) if holder.is(current) => answer,
            _ => Renewed::NotHolder,
        }
    }

    /// Decides how to handle a release.
    pub(super) fn release(&mut self, lease: &Sequencer, now: Moment) -> Release {
        if let Some(queue) = self.queues.get_mut(lease.resource()) {
            let holds = queue.held().is_some_and(|(_, current)| current.is(lease));
            if holds {
                let end = End::Released(lease.token());
                let (resource, holder) = (lease.resource(), lease.holder());
                self.tombstones.acquisition(resource, holder, end, now);
                queue.release(lease, now);
            }
            match queue.pending.wait_for(lease) {
                Some((pending, answer)) if holds => return Release::Begin(pending, answer),
                Some((_, answer)) => {
                    queue.wake().notify_one();
                    return Release::Again(answer);
                }
                None => {}
            }
        }
        match self.tombstones.how(lease.resource(), lease.holder()) {
            Some(end) => Release::Answered(end.answer(lease)),
            None => Release::Direct,
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
        let mut known = self.tombstones.knows(attempt);
        if let Some(queue) = self.queues.get_mut(resource) {
            known |= queue
                .held()
                .is_some_and(|(_, current)| current.holder == *holder);
            known |= queue.cancel_waiting(*holder, *id, now);
            queue.cancel_held(*holder, *id, now);
        }
        let end = if known {
            End::Over
        } else {
            End::CancelledUnseen
        };
        self.tombstones.attempt(attempt, end, now);
        known
    }

    /// The answers to all pending releases of this resource.
    pub(super) fn wait_for_pending(
        &mut self,
        resource: &ResourceName,
    ) -> Vec<oneshot::Receiver<pending_release::Answer>> {
        let Some(queue) = self.queues.get_mut(resource) else {
            return Vec::new();
        };
        queue.wake().notify_one();
        queue.pending.wait_for_all()
    }

    /// A release has begun to end a shared lease, and leaves the rest to the driver.
    pub(super) fn complete(&mut self, ending: Ending) {
        if let Some(queue) = self.queues.get_mut(&ending.pending.attempt.resource) {
            queue.complete(ending);
        }
    }

    /// The service has answered the end of a shared lease, or has not. If the lease was already
    /// gone, its last holder had lost it.
    pub(super) fn ended(
        &mut self,
        pending: &PendingRelease,
        answer: &pending_release::Answer,
        now: Moment,
    ) {
        let resource = &pending.attempt.resource;
        if let (Some(release), Ok(Released::NotHolder)) = (&pending.release, answer) {
            let lost = release.current.holder();
            self.tombstones.acquisition(resource, lost, End::Over, now);
        }
        if let Some(queue) = self.queues.get_mut(resource) {
            queue.ended(pending, answer);
        }
    }

    /// The lease of our holder with this token is about to be ended by force: the token by which
    /// the service knows it, or `None` if it was passed on since.
    ///
    /// Its shared lease may end at any moment from here on, so it is not passed on any more.
    pub(super) fn forcing(
        &mut self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Option<FencingToken> {
        let queue = self.queues.get_mut(resource);
        match queue.and_then(Queue::held_mut) {
            Some((shared, current)) if current.token == token => {
                shared.stop_passing();
                Some(shared.first)
            }
            Some((shared, _)) if shared.first == token => None,
            _ => Some(token),
        }
    }

    /// The service has forcibly ended the lease with this token.
    pub(super) fn forced(&mut self, resource: &ResourceName, first: FencingToken, now: Moment) {
        let Some(queue) = self.queues.get_mut(resource) else {
            return;
        };
        if queue
            .held()
            .is_some_and(|(shared, _)| shared.first == first)
            && let Some(lost) = queue.lose(now)
        {
            self.tombstones
                .acquisition(resource, lost.holder, End::Over, now);
        }
    }

    /// Corrects an inspection by what this process knows better than the service: who has the lock
    /// of a shared lease, and how many wait for it here.
    pub(super) fn shown(&self, resource: &ResourceName, mut seen: Inspection) -> Inspection {
        let Some(queue) = self.queues.get(resource) else {
            return seen;
        };
        if let (Some((shared, current)), Some(view)) = (queue.held(), &seen.holder)
            && view.fingerprint == shared.attempt.holder.fingerprint()
        {
            let shown = HolderView::new(current.holder, current.token, view.remaining);
            seen.holder = Some(shown.metadata(current.metadata.clone()));
        }
        if let Some(at_service) = &mut seen.waiters {
            // The service counts the whole queue as one while its request waits, otherwise not at
            // all.
            let counted = u64::from(queue.is_asking());
            let here = u64::try_from(queue.waiters().len()).unwrap_or(u64::MAX);
            *at_service = at_service.saturating_sub(counted).saturating_add(here);
        }
        seen
    }

    fn refuse(&self, kind: ErrorKind, resource: &ResourceName) -> Entry {
        let error = Error::not_applied(kind);
        Entry::Answered(Err(error.on(resource)))
    }

    fn enqueue(&mut self, request: &AcquireRequest) -> Place {
        let resource = &request.attempt.resource;
        let (answer, answered) = oneshot::channel();
        let arrival = self.next;
        self.next = Arrival(arrival.0 + 1);
        let is_new = !self.queues.contains_key(resource);
        let queue = self.queues.entry(resource.clone());
        let queue = queue.or_insert_with(Queue::new);
        let behind = !queue.is_idle();
        queue.enqueue(Waiter {
            arrival,
            behind,
            request: request.clone(),
            answer,
        });
        Place {
            ticket: Ticket {
                attempt: request.attempt.clone(),
                arrival,
            },
            answer: answered,
            undriven: is_new.then(|| Arc::clone(queue.wake())),
        }
    }

    fn expire(&mut self, resource: &ResourceName, now: Moment) {
        if let Some(queue) = self.queues.get_mut(resource)
            && let Some(lost) = queue.expire(now)
        {
            self.tombstones
                .acquisition(resource, lost.holder, End::Over, now);
        }
    }
}

/// Whether a request may wait in the queue of the process and be passed the lock.
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
