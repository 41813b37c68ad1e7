mod counter;
mod ending;
mod held;
mod queue;
mod together;

use std::{collections::HashMap, sync::Arc, time::Duration};

use self::{counter::Counter, held::Held, queue::Queue};
use super::ENDED_TTL;
use crate::backend::support::Tombstones;
use crate::{
    AcquireRequest, AttemptRef, HolderView, InitialToken, Inspection, Lease, Listed, Moment,
    RenewRequest, Renewed, ResourceName,
    acquisition::{Reply, Wake, WakeUps},
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

    /// Looks. With wake-ups the attempt takes a place in the queue, or keeps it; without, it leaves
    /// the queue.
    pub(super) fn acquire(
        &mut self,
        request: &AcquireRequest,
        wake_ups: Option<&Arc<WakeUps>>,
        now: Moment,
        unix_time: Duration,
    ) -> Result<Reply, Refusal> {
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
            return Ok(Reply::Granted(grant));
        };
        if entry.held.holder == *holder {
            return Ok(Reply::Granted(entry.held.replay(*id, now)));
        }
        let left = entry.held.deadline.since(now);
        let Some(wake_ups) = wake_ups else {
            entry.queue.leave(&request.attempt);
            return Ok(Reply::Held { left });
        };
        entry.queue.join(request, wake_ups)?;
        // The first of the queue is woken if the present lease is handed on sooner.
        let look_again = left;
        Ok(Reply::Queued { left, look_again })
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
        let mut names: Vec<_> = self.resources.keys().cloned().collect();
        // To inspect one may hand it on, which draws a token: in the same order each time.
        names.sort();
        let listed = names.into_iter().map(|resource| Listed {
            inspection: self.inspect(&resource, now),
            resource,
        });
        listed
            .filter(|listed| listed.inspection.holder.is_some())
            .collect()
    }

    /// Takes an attempt out of the queue.
    pub(super) fn leave_queue(&mut self, attempt: &AttemptRef) {
        if let Some(entry) = self.resources.get_mut(&attempt.resource) {
            entry.queue.leave(attempt);
        }
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
        let mut queue = entry.queue;
        while let Some((request, wake_ups)) = queue.next() {
            let Ok(token) = self.counter.draw(request.floor) else {
                // Its next look is refused, too.
                wake_ups.wake(Wake::Look);
                continue;
            };
            let mut held = Held::new(&request, token, now);
            wake_ups.wake(Wake::Granted(held.grant(now)));
            queue.grant_other_attempts(&mut held, now);
            queue.wake_first();
            self.resources
                .insert(resource.clone(), Resource { held, queue });
            return;
        }
    }
}

impl Resource {
    fn held_by(held: Held) -> Self {
        Self {
            held,
            queue: Queue::default(),
        }
    }
}

#[cfg(test)]
mod tests;
