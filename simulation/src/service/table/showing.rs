//! Looks that change nothing.

use lock_core::{
    FencingToken, Holder, HolderView, Inspection, Listed, ResourceName,
    backend::{AttemptId, AttemptRef, Moment},
};

use super::{Step, Table, Visit};
use crate::service::settings::Variant;

/// The part of a service's state that has to be gone when all clients have gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// The leases that live.
    pub leases: Vec<LeaseLeft>,
    /// The places in queues, also of waiters that are passed over.
    pub places: Vec<AttemptRef>,
}

/// A lease that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseLeft {
    /// The resource that is held.
    pub resource: ResourceName,
    /// Its holder.
    pub holder: Holder,
    /// Its token.
    pub token: FencingToken,
    /// The attempts that have it: its holds.
    pub holds: Vec<AttemptId>,
    /// The lease is not confirmed.
    pub is_offer: bool,
}

impl Visit<'_, '_> {
    pub(in crate::service) fn inspect(&mut self) -> Inspection {
        self.settle(None);
        let now = self.step.now;
        let holder = self.resource.held.as_ref().map(|held| {
            let view = HolderView::new(held.holder, held.token, held.left(now));
            view.metadata(held.metadata.clone())
        });
        let inspection = Inspection::new(holder);
        match self.settings.variant {
            Variant::Unqueued => inspection,
            _ => inspection.waiters(self.waiters()),
        }
    }

    /// How many acquisitions wait. An acquisition that is offered the lease does not wait.
    pub(super) fn waiters(&self) -> u64 {
        let held = self.resource.held.as_ref();
        let waiters = self
            .resource
            .queue
            .acquisitions(held.map(|held| held.holder));
        u64::try_from(waiters).unwrap_or(u64::MAX)
    }
}

impl Table {
    /// Everything that is held or waited for.
    pub(in crate::service) fn list(&mut self, step: &mut Step<'_>) -> Vec<Listed> {
        let names: Vec<_> = self.resources.keys().cloned().collect();
        let listed = names.into_iter().map(|resource| {
            let inspection = self.visit(&resource, step).inspect();
            Listed::new(resource, inspection)
        });
        let is_used =
            |found: &Inspection| found.holder.is_some() || found.waiters.is_some_and(|n| n > 0);
        listed
            .filter(|listed| is_used(&listed.inspection))
            .collect()
    }

    pub(in crate::service) fn left_behind(&self, now: Moment) -> LeftBehind {
        let mut left = LeftBehind::default();
        for (name, resource) in &self.resources {
            let living = resource.held.as_ref().filter(|held| held.deadline > now);
            left.leases.extend(living.map(|held| LeaseLeft {
                resource: name.clone(),
                holder: held.holder,
                token: held.token,
                holds: held.holds.clone(),
                is_offer: held.is_offer,
            }));
            let waiters = resource.queue.living(now, self.settings.place_ttl);
            left.places
                .extend(waiters.map(|waiter| waiter.asker.attempt().clone()));
        }
        left
    }
}
