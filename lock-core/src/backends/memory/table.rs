use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::sync::oneshot;

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

/// A resource is in the table only while it is held or waited for.
#[derive(Debug, Default)]
struct Resource {
    held: Option<Held>,
    queue: VecDeque<Waiter>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    holder: Holder,
    /// The latest attempt that was told of the lease.
    attempt: AttemptId,
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
    /// In line; the grant will arrive here.
    Queued(oneshot::Receiver<Result<Grant, Refusal>>),
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
        if let Some(held) = self.held_mut(resource)
            && held.holder == *holder
        {
            held.attempt = *id;
            let lease = Lease::counted_from(now, held.deadline.since(now));
            return Ok(Answer::Granted(Grant::new(held.token, lease)));
        }
        let counter = self.counter(unix_time);
        let greatest = self.initial.greatest_floor(counter, unix_time);
        if request.floor.is_some_and(|floor| floor.get() > greatest) {
            return Err(Refusal::FloorImplausible { greatest });
        }
        if self.held(resource).is_none() {
            let attempt = (*holder, *id);
            return self
                .grant(resource, attempt, request.ttl, request.floor, now)
                .map(Answer::Granted);
        }
        match request.wait {
            Wait::Never => Ok(Answer::Held(self.left(resource, now))),
            Wait::Until(_) | Wait::Forever => Ok(Answer::Queued(self.enqueue(request))),
        }
    }

    pub(super) fn renew(&mut self, request: &RenewRequest, now: Moment) -> Renewed {
        let sequencer = &request.sequencer;
        self.serve(sequencer.resource(), now);
        match self.held_mut(sequencer.resource()) {
            Some(held) if held.is(sequencer) => {
                held.deadline = now + request.ttl.get();
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
            self.end(sequencer.resource(), End::Released(sequencer.token()), now);
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
        if self.leave_queue(attempt) {
            return;
        }
        let ours = |held: Held| held.holder == attempt.holder && held.attempt == attempt.id;
        if self.held(&attempt.resource).is_some_and(ours) {
            self.end(&attempt.resource, End::Cancelled, now);
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
        if self.held(resource).is_some_and(|held| held.deadline <= now) {
            self.end(resource, End::Expired, now);
        }
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

    /// The time left of the present lease; zero if there is none.
    pub(super) fn left(&self, resource: &ResourceName, now: Moment) -> Duration {
        self.held(resource)
            .map_or(Duration::ZERO, |held| held.deadline.since(now))
    }

    fn held(&self, resource: &ResourceName) -> Option<Held> {
        self.resources.get(resource).and_then(|entry| entry.held)
    }

    fn held_mut(&mut self, resource: &ResourceName) -> Option<&mut Held> {
        self.resources
            .get_mut(resource)
            .and_then(|entry| entry.held.as_mut())
    }

    /// The counter, which starts here if there is none.
    fn counter(&mut self, unix_time: Duration) -> u64 {
        let first = match self.initial {
            InitialToken::Clock => InitialToken::clock_token(unix_time),
            InitialToken::At(token) => token.get(),
        };
        *self.counter.get_or_insert(first.saturating_sub(1))
    }

    fn enqueue(&mut self, request: &AcquireRequest) -> oneshot::Receiver<Result<Grant, Refusal>> {
        let AttemptRef {
            resource,
            holder,
            id,
        } = &request.attempt;
        let (grant, granted) = oneshot::channel();
        let waiter = Waiter {
            holder: *holder,
            attempt: *id,
            ttl: request.ttl,
            floor: request.floor,
            grant,
        };
        let queue = &mut self.resources.entry(resource.clone()).or_default().queue;
        match queue.iter_mut().find(|waiter| waiter.holder == *holder) {
            // Another attempt of the same acquisition keeps its place in line.
            Some(earlier) => *earlier = waiter,
            None => queue.push_back(waiter),
        }
        granted
    }

    fn grant(
        &mut self,
        resource: &ResourceName,
        (holder, attempt): (Holder, AttemptId),
        ttl: Ttl,
        floor: Option<FencingToken>,
        now: Moment,
    ) -> Result<Grant, Refusal> {
        let least = floor.map_or(0, FencingToken::get);
        let next = std::cmp::max(self.counter.unwrap_or(0).saturating_add(1), least);
        let token = FencingToken::new(next).map_err(|_| Refusal::TokensExhausted)?;
        self.counter = Some(next);
        let held = Held {
            holder,
            attempt,
            token,
            deadline: now + ttl.get(),
        };
        self.resources.entry(resource.clone()).or_default().held = Some(held);
        Ok(Grant::new(token, Lease::counted_from(now, ttl.get())))
    }

    /// Ends the present lease and grants to the first waiter that is still there.
    fn end(&mut self, resource: &ResourceName, end: End, now: Moment) {
        let Some(entry) = self.resources.get_mut(resource) else {
            return;
        };
        if let Some(held) = entry.held.take() {
            match end {
                End::Cancelled => self.ended.attempt(held.holder, held.attempt, now),
                end => self.ended.acquisition(held.holder, end, now),
            }
        }
        while let Some(waiter) = self
            .resources
            .get_mut(resource)
            .and_then(|e| e.queue.pop_front())
        {
            if waiter.grant.is_closed() {
                continue;
            }
            let attempt = (waiter.holder, waiter.attempt);
            let grant = self.grant(resource, attempt, waiter.ttl, waiter.floor, now);
            let granted = grant.is_ok();
            let received = waiter.grant.send(grant).is_ok();
            if granted && received {
                return;
            }
            if let Some(entry) = self.resources.get_mut(resource) {
                entry.held = None;
            }
        }
        self.resources.remove(resource);
    }
}

impl Held {
    fn is(&self, sequencer: &Sequencer) -> bool {
        self.holder == sequencer.holder() && self.token == sequencer.token()
    }
}

#[cfg(test)]
mod tests;
