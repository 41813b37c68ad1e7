use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::sync::{Notify, oneshot};

use super::ended::{End, Ended};
use crate::{
    AcquireRequest, AttemptId, AttemptRef, FencingToken, Grant, Holder, HolderView, InitialToken,
    Inspection, Lease, Moment, Released, RenewRequest, Renewed, ResourceName, Sequencer, Ttl, Wait,
};

/// Leases, queues and the counter: a state machine without time or tasks of its own.
#[derive(Debug)]
pub(super) struct Table {
    initial: InitialToken,
    /// The last token that was issued.
    counter: Option<u64>,
    resources: HashMap<ResourceName, Resource>,
    ended: Ended,
}

/// A resource is in the table only while it is held. It may be waited for only while it is held.
#[derive(Debug)]
struct Resource {
    held: Held,
    queue: VecDeque<Waiter>,
    /// Told of every change of the deadline, by which waiters have to act.
    moved: Arc<Notify>,
}

#[derive(Debug)]
struct Held {
    holder: Holder,
    /// The attempts that were told of the lease. It is cancelled when none is left.
    attempts: Vec<AttemptId>,
    token: FencingToken,
    deadline: Moment,
}

#[derive(Debug)]
struct Waiter {
    holder: Holder,
    attempt: AttemptId,
    ttl: Ttl,
    floor: Option<FencingToken>,
    grant: oneshot::Sender<Result<Grant, Refusal>>,
}

/// What becomes of a request to acquire.
#[derive(Debug)]
pub(super) enum Answer {
    Granted(Grant),
    /// Held by somebody else for at most this long.
    Held(Duration),
    Queued(Place),
}

/// A place in line.
#[derive(Debug)]
pub(super) struct Place {
    /// The grant will arrive here.
    pub(super) grant: oneshot::Receiver<Result<Grant, Refusal>>,
    /// The deadline of the present lease has changed.
    pub(super) moved: Arc<Notify>,
}

/// Why a request to acquire is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Ended,
    FloorImplausible { greatest: u64 },
    TokensExhausted,
}

impl Table {
    pub(super) fn new(initial: InitialToken) -> Self {
        Self {
            initial,
            counter: None,
            resources: HashMap::new(),
            ended: Ended::default(),
        }
    }

    pub(super) fn acquire(
        &mut self,
        request: &AcquireRequest,
        now: Moment,
        unix_time: Duration,
    ) -> Result<Answer, Refusal> {
        let AttemptRef {
            resource,
            holder,
            id,
        } = &request.attempt;
        self.serve(resource, now);
        if self.ended.contains(*holder, *id) {
            return Err(Refusal::Ended);
        }
        self.check_floor(request.floor, unix_time)?;
        let Some(entry) = self.resources.get_mut(resource) else {
            let held = self.next(*holder, *id, request.ttl, request.floor, now)?;
            let grant = held.grant(now);
            self.resources
                .insert(resource.clone(), Resource::held_by(held));
            return Ok(Answer::Granted(grant));
        };
        if entry.held.holder == *holder {
            return Ok(Answer::Granted(entry.held.replay(*id, now)));
        }
        match request.wait {
            Wait::Never => Ok(Answer::Held(entry.held.deadline.since(now))),
            Wait::Until(_) | Wait::Forever => Ok(Answer::Queued(entry.enqueue(request))),
        }
    }

    pub(super) fn renew(&mut self, request: &RenewRequest, now: Moment) -> Renewed {
        let sequencer = &request.sequencer;
        self.serve(sequencer.resource(), now);
        match self.resources.get_mut(sequencer.resource()) {
            Some(entry) if entry.held.is(sequencer) => {
                entry.held.deadline = now + request.ttl.get();
                entry.moved.notify_waiters();
                Renewed::Renewed(Lease::counted_from(now, request.ttl.get()))
            }
            _ => Renewed::NotHolder,
        }
    }

    pub(super) fn release(&mut self, sequencer: &Sequencer, now: Moment) -> Released {
        self.serve(sequencer.resource(), now);
        if self
            .held(sequencer.resource())
            .is_some_and(|held| held.is(sequencer))
        {
            let end = End::Released(sequencer.token());
            self.ended.acquisition(sequencer.holder(), end, now);
            self.hand_on(sequencer.resource(), now);
            return Released::Released;
        }
        match self.ended.how(sequencer.holder()) {
            Some(End::Released(token)) if token == sequencer.token() => Released::Released,
            _ => Released::NotHolder,
        }
    }

    pub(super) fn cancel(&mut self, attempt: &AttemptRef, now: Moment) {
        self.serve(&attempt.resource, now);
        self.ended.attempt(attempt.holder, attempt.id, now);
        self.leave_queue(attempt);
        let Some(entry) = self.resources.get_mut(&attempt.resource) else {
            return;
        };
        if entry.held.holder == attempt.holder && entry.held.forget(attempt.id) {
            self.hand_on(&attempt.resource, now);
        }
    }

    pub(super) fn inspect(&mut self, resource: &ResourceName, now: Moment) -> Inspection {
        self.serve(resource, now);
        Inspection::new(
            self.held(resource)
                .map(|held| HolderView::new(held.holder, held.token, held.deadline.since(now))),
        )
    }

    /// Ends a lease that has run out and hands the resource to the head of its queue.
    pub(super) fn serve(&mut self, resource: &ResourceName, now: Moment) {
        let Some(held) = self.held(resource).filter(|held| held.deadline <= now) else {
            return;
        };
        let holder = held.holder;
        self.ended.acquisition(holder, End::Expired, now);
        self.hand_on(resource, now);
    }

    /// Takes an attempt out of the queue; false if it is not in it.
    pub(super) fn leave_queue(&mut self, attempt: &AttemptRef) -> bool {
        let Some(entry) = self.resources.get_mut(&attempt.resource) else {
            return false;
        };
        let waiting = entry.queue.len();
        entry
            .queue
            .retain(|waiter| waiter.holder != attempt.holder || waiter.attempt != attempt.id);
        entry.queue.len() < waiting
    }

    /// When the present lease ends, or never if there is none.
    pub(super) fn lease_end(&self, resource: &ResourceName) -> Moment {
        self.held(resource)
            .map_or(Moment::NEVER, |held| held.deadline)
    }

    fn held(&self, resource: &ResourceName) -> Option<&Held> {
        self.resources.get(resource).map(|entry| &entry.held)
    }

    /// Refuses a floor that would lift the counter by more than can be meant.
    fn check_floor(
        &mut self,
        floor: Option<FencingToken>,
        unix_time: Duration,
    ) -> Result<(), Refusal> {
        let first = match self.initial {
            InitialToken::Clock => InitialToken::clock_token(unix_time),
            InitialToken::At(token) => token.get(),
        };
        let counter = *self.counter.get_or_insert(first.saturating_sub(1));
        let greatest = self.initial.greatest_floor(counter, unix_time);
        match floor.map(FencingToken::get) {
            Some(floor) if floor > counter + 1 && floor > greatest => {
                Err(Refusal::FloorImplausible { greatest })
            }
            _ => Ok(()),
        }
    }

    /// Draws the next token for a holder.
    fn next(
        &mut self,
        holder: Holder,
        attempt: AttemptId,
        ttl: Ttl,
        floor: Option<FencingToken>,
        now: Moment,
    ) -> Result<Held, Refusal> {
        let least = floor.map_or(0, FencingToken::get);
        let next = std::cmp::max(self.counter.unwrap_or(0).saturating_add(1), least);
        let token = FencingToken::new(next).map_err(|_| Refusal::TokensExhausted)?;
        self.counter = Some(next);
        Ok(Held {
            holder,
            attempts: vec![attempt],
            token,
            deadline: now + ttl.get(),
        })
    }

    /// The present lease has ended: grants to the first waiter that is still there.
    fn hand_on(&mut self, resource: &ResourceName, now: Moment) {
        let Some(entry) = self.resources.remove(resource) else {
            return;
        };
        let Resource {
            mut queue, moved, ..
        } = entry;
        while let Some(waiter) = queue.pop_front() {
            if waiter.grant.is_closed() {
                continue;
            }
            let Waiter {
                holder,
                attempt,
                ttl,
                floor,
                grant,
            } = waiter;
            let mut held = match self.next(holder, attempt, ttl, floor, now) {
                Ok(held) => held,
                Err(refusal) => {
                    // Who does not receive it has gone away and needs no answer.
                    grant.send(Err(refusal)).ok();
                    continue;
                }
            };
            if grant.send(Ok(held.grant(now))).is_err() {
                continue;
            }
            held.tell_other_attempts(&mut queue, now);
            moved.notify_waiters();
            self.resources
                .insert(resource.clone(), Resource { held, queue, moved });
            return;
        }
    }
}

impl Resource {
    fn held_by(held: Held) -> Self {
        Self {
            held,
            queue: VecDeque::new(),
            moved: Arc::default(),
        }
    }

    fn enqueue(&mut self, request: &AcquireRequest) -> Place {
        let AttemptRef { holder, id, .. } = request.attempt;
        let (grant, granted) = oneshot::channel();
        let (ttl, floor) = (request.ttl, request.floor);
        self.queue.push_back(Waiter {
            holder,
            attempt: id,
            ttl,
            floor,
            grant,
        });
        Place {
            grant: granted,
            moved: Arc::clone(&self.moved),
        }
    }
}

impl Held {
    fn is(&self, sequencer: &Sequencer) -> bool {
        self.holder == sequencer.holder() && self.token == sequencer.token()
    }

    fn grant(&self, now: Moment) -> Grant {
        Grant::new(
            self.token,
            Lease::counted_from(now, self.deadline.since(now)),
        )
    }

    /// Tells an attempt of the lease that its acquisition has.
    fn replay(&mut self, attempt: AttemptId, now: Moment) -> Grant {
        if !self.attempts.contains(&attempt) {
            self.attempts.push(attempt);
        }
        self.grant(now)
    }

    /// An attempt gives the lease up; true if no other one relies on it.
    fn forget(&mut self, attempt: AttemptId) -> bool {
        self.attempts.retain(|other| *other != attempt);
        self.attempts.is_empty()
    }

    /// Other attempts of the same acquisition may be in line: they have what they wait for.
    fn tell_other_attempts(&mut self, queue: &mut VecDeque<Waiter>, now: Moment) {
        let waiting = std::mem::take(queue);
        for waiter in waiting {
            if waiter.holder != self.holder {
                queue.push_back(waiter);
            } else if waiter.grant.send(Ok(self.grant(now))).is_ok() {
                self.attempts.push(waiter.attempt);
            }
        }
    }
}

#[cfg(test)]
mod tests;
