mod ending;
mod queue;

use std::{collections::HashMap, sync::Arc, time::Duration};

use self::queue::Queue;
use super::ENDED_TTL;
use crate::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, Error, Grant, Holder, HolderView, InitialToken,
    Inspection, Lease, Listed, Moment, RenewRequest, Renewed, ResourceName,
    acquisition::{Reply, WakeUps},
    backend::support::{
        End, Tombstones,
        rule::{self, Tokens},
    },
};

type Visit = rule::Visit<Holder, AttemptId>;
type Held = rule::Held<Holder, AttemptId>;

/// Leases, queues and the counter: a state machine without time or tasks of its own.
#[derive(Debug)]
pub(super) struct Table {
    tokens: Tokens,
    resources: HashMap<ResourceName, Resource>,
    tombstones: Tombstones,
}

/// A resource that is held. A resource that is free is not in the table, and has no waiters.
#[derive(Debug, Default)]
struct Resource {
    held: Option<Held>,
    queue: Queue,
}

impl Table {
    pub(super) fn new(initial: InitialToken) -> Self {
        Self {
            tokens: Tokens::of_one_counter(initial),
            resources: HashMap::new(),
            tombstones: Tombstones::new(ENDED_TTL),
        }
    }

    /// Looks once. With wake-ups the attempt takes or keeps a place in the queue. Without wake-ups
    /// it leaves the queue.
    pub(super) fn acquire(
        &mut self,
        request: &AcquireRequest,
        wake_ups: Option<&Arc<WakeUps>>,
        now: Moment,
        unix_time: Duration,
    ) -> Result<Reply, Error> {
        let attempt = &request.attempt;
        self.tokens.look_at(unix_time);
        let mut visit = self.visit_attempt(attempt, now);
        if let Some(entry) = self.resources.get(&attempt.resource)
            && request.max_waiters.is_some()
        {
            visit.queue = entry.queue.view(attempt.holder);
        }
        let reply = visit.acquire(request, wake_ups.is_some(), &mut self.tokens);
        let waits = wake_ups.filter(|_| visit.waits);
        self.keep(&attempt.resource, visit);
        let entry = self.resources.get_mut(&attempt.resource);
        if let (Some(wake_ups), Some(entry)) = (waits, entry) {
            entry.queue.keep(request, wake_ups);
        }
        reply
    }

    pub(super) fn acquire_together(
        &mut self,
        requests: &[AcquireRequest],
        now: Moment,
        unix_time: Duration,
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        self.tokens.look_at(unix_time);
        let visits = requests.iter();
        let visits = visits.map(|request| self.visit_attempt(&request.attempt, now));
        let mut visits: Vec<_> = visits.collect();
        let answer = Visit::acquire_together(&mut visits, requests, &mut self.tokens);
        for (request, visit) in requests.iter().zip(visits) {
            self.keep(&request.attempt.resource, visit);
        }
        answer
    }

    pub(super) fn renew(&mut self, request: &RenewRequest, now: Moment) -> Renewed {
        let (lease, ttl) = (&request.sequencer, request.ttl.get());
        let mut visit = self.visit(lease.resource(), lease.holder(), now);
        let renewed = visit.renew(lease.token(), ttl);
        self.keep(lease.resource(), visit);
        match renewed {
            true => Renewed::Renewed(Lease::counted_from(now, ttl)),
            false => Renewed::NotHolder,
        }
    }

    pub(super) fn inspect(&mut self, resource: &ResourceName, now: Moment) -> Inspection {
        self.serve(resource, now);
        let entry = self.resources.get(resource);
        let holder = entry.and_then(|entry| entry.held.as_ref()).map(|held| {
            HolderView::new(held.holder, held.token, held.until.since(now))
                .metadata(held.metadata.clone())
        });
        Inspection::new(holder).waiters(entry.map_or(0, |entry| entry.queue.len()))
    }

    /// Everything that is held.
    pub(super) fn list(&mut self, now: Moment) -> Vec<Listed> {
        let mut names: Vec<_> = self.resources.keys().cloned().collect();
        // An inspection may hand a resource on, which draws a token. So the order must be the same
        // each time.
        names.sort();
        let listed = names.into_iter().map(|resource| Listed {
            inspection: self.inspect(&resource, now),
            resource,
        });
        listed
            .filter(|listed| listed.inspection.holder.is_some())
            .collect()
    }

    /// A visit of an acquisition. Its lease is not in the table until the visit is kept.
    fn visit(&mut self, resource: &ResourceName, holder: Holder, now: Moment) -> Visit {
        self.serve(resource, now);
        let entry = self.resources.get_mut(resource);
        let end = self.tombstones.how(resource, holder);
        Visit {
            held: entry.and_then(|entry| entry.held.take()),
            end,
            has_ended: end.is_some(),
            ..Visit::new(holder, now)
        }
    }

    fn visit_attempt(&mut self, attempt: &AttemptRef, now: Moment) -> Visit {
        let visit = self.visit(&attempt.resource, attempt.holder, now);
        Visit {
            attempt: Some(attempt.id),
            has_ended: self.tombstones.forbids(attempt),
            end: self.tombstones.how_attempt(attempt),
            ..visit
        }
    }

    /// Keeps the outcome of a visit, and hands on a resource that is free.
    fn keep(&mut self, resource: &ResourceName, visit: Visit) {
        let (now, entry) = (
            visit.now,
            self.resources.entry(resource.clone()).or_default(),
        );
        if let (Some(id), false) = (visit.attempt, visit.waits) {
            entry.queue.leave(visit.holder, id);
        }
        entry.held = visit.held;
        for (holder, attempt, end) in visit.ends {
            let resource = resource.clone();
            match attempt {
                None => self.tombstones.acquisition(&resource, holder, end, now),
                Some(id) => {
                    let attempt = AttemptRef {
                        resource,
                        holder,
                        id,
                    };
                    self.tombstones.attempt(&attempt, end, now);
                }
            }
        }
        self.hand_on(resource, now);
    }

    /// Ends a lease that has run out, and hands the resource on.
    fn serve(&mut self, resource: &ResourceName, now: Moment) {
        let entry = self.resources.get_mut(resource);
        let lost = entry.and_then(|entry| entry.held.take_if(|held| held.until <= now));
        if let Some(lost) = lost {
            self.tombstones
                .acquisition(resource, lost.holder, End::Over, now);
            self.hand_on(resource, now);
        }
    }

    /// Grants a resource that is free to the first waiter that is still there, and to the other
    /// attempts of its acquisition.
    fn hand_on(&mut self, resource: &ResourceName, now: Moment) {
        let free = self.resources.get_mut(resource);
        let Some(entry) = free.filter(|entry| entry.held.is_none()) else {
            return;
        };
        entry.queue.hand_on(|request| {
            let mut visit = Visit {
                attempt: Some(request.attempt.id),
                held: entry.held.take(),
                ..Visit::new(request.attempt.holder, now)
            };
            let reply = visit.acquire(request, false, &mut self.tokens);
            entry.held = visit.held;
            reply
        });
        if entry.held.is_none() {
            self.resources.remove(resource);
        }
    }
}

#[cfg(test)]
mod tests;
