mod counter;
mod ending;
mod held;
mod queue;
mod together;

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::sync::{Notify, oneshot};

use self::{counter::Counter, held::Held, queue::Queue};
use super::ENDED_TTL;
use crate::backend::support::Tombstones;
use crate::{
    AcquireRequest, AttemptRef, Grant, HolderView, InitialToken, Inspection, Lease, Listed, Moment,
    RenewRequest, Renewed, ResourceName, Wait,
};

/// Leases, queues and the counter: a state machine without time or tasks of its own.
#[derive(Debug)]
pub(super) struct Table {
    counter: Counter,
    resources: HashMap<ResourceName, Resource>,
    tombstones: Tombstones,
}

/// A resource is in the table only while it is held. Only then may it be waited for.
#[derive(Debug)]
struct Resource {
    held: Held,
    queue: Queue,
    /// Told of every change of the moment by which waiters have to act.
    moved: Arc<Notify>,
}

/// What becomes of a request to acquire.
#[derive(Debug)]
pub(super) enum Answer {
    Granted(Grant),
    /// By somebody else, for at most this long.
    Held(Duration),
    Queued(Waiting),
}

/// A place in the queue.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The grant will arrive here.
    pub(super) grant: oneshot::Receiver<Result<Grant, Refusal>>,
    /// The next change has been moved.
    pub(super) moved: Arc<Notify>,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Ended,
    FloorImplausible { greatest: u64 },
    TokensExhausted,
    QueueFull,
}

impl Table {
    pub(super) fn new(initial: InitialToken) -> Self {
        Self {
            counter: Counter::new(initial),
            resources: HashMap::new(),
            tombstones: Tombstones::new(ENDED_TTL),
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
        if self.tombstones.forbids(&request.attempt) {
            return Err(Refusal::Ended);
        }
        self.counter.check_floor(request.floor, unix_time)?;
        let Some(entry) = self.resources.get_mut(resource) else {
            let token = self.counter.draw(request.floor)?;
            let held = Held::new(request, token, now);
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
            Wait::Until(_) | Wait::Forever => Ok(Answer::Queued(Waiting {
                grant: entry.queue.join(request)?,
                moved: Arc::clone(&entry.moved),
            })),
        }
    }

    pub(super) fn renew(&mut self, request: &RenewRequest, now: Moment) -> Renewed {
        let sequencer = &request.sequencer;
        self.serve(sequencer.resource(), now);
        let Some(entry) = self.resources.get_mut(sequencer.resource()) else {
            return Renewed::NotHolder;
        };
        if !entry.held.is(sequencer) {
            return Renewed::NotHolder;
        }
        let ttl = request.ttl.get();
        entry.held.renew(now + ttl);
        entry.moved.notify_waiters();
        Renewed::Renewed(Lease::counted_from(now, ttl))
    }

    pub(super) fn inspect(&mut self, resource: &ResourceName, now: Moment) -> Inspection {
        self.serve(resource, now);
        let Some(entry) = self.resources.get(resource) else {
            return Inspection::new(None).waiters(0);
        };
        let held = &entry.held;
        let holder = HolderView::new(held.holder, held.token, held.deadline.since(now))
            .metadata(held.metadata.clone());
        Inspection::new(Some(holder)).waiters(entry.queue.len())
    }

    /// Everything that is held.
    pub(super) fn list(&mut self, now: Moment) -> Vec<Listed> {
        let names: Vec<_> = self.resources.keys().cloned().collect();
        let listed = names.into_iter().map(|resource| Listed {
            inspection: self.inspect(&resource, now),
            resource,
        });
        listed
            .filter(|listed| listed.inspection.holder.is_some())
            .collect()
    }

    /// Takes an attempt out of the queue; false if it is not in it.
    pub(super) fn leave_queue(&mut self, attempt: &AttemptRef) -> bool {
        let entry = self.resources.get_mut(&attempt.resource);
        entry.is_some_and(|entry| entry.queue.leave(attempt))
    }

    /// When waiters have to act next, or never if there is nothing to wait for.
    pub(super) fn next_change(&self, resource: &ResourceName) -> Moment {
        let entry = self.resources.get(resource);
        entry.map_or(Moment::NEVER, |entry| entry.held.deadline)
    }

    fn held(&self, resource: &ResourceName) -> Option<&Held> {
        self.resources.get(resource).map(|entry| &entry.held)
    }

    fn held_mut(&mut self, resource: &ResourceName) -> Option<&mut Held> {
        let entry = self.resources.get_mut(resource);
        entry.map(|entry| &mut entry.held)
    }

    /// Nothing keeps the resource any more: grants it to the first waiter that is still there.
    fn hand_on(&mut self, resource: &ResourceName, now: Moment) {
        let Some(entry) = self.resources.remove(resource) else {
            return;
        };
        let Resource {
            mut queue, moved, ..
        } = entry;
        while let Some(waiter) = queue.next() {
            let request = &waiter.request;
            let mut held = match self.counter.draw(request.floor) {
                Ok(token) => Held::new(request, token, now),
                Err(refusal) => {
                    waiter.answer(Err(refusal));
                    continue;
                }
            };
            if !waiter.answer(Ok(held.grant(now))) {
                continue;
            }
            queue.tell_other_attempts(&mut held, now);
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
            queue: Queue::default(),
            moved: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests;
