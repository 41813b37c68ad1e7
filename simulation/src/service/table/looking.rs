//! Requests that ask for a lease, confirm an offer, or renew a lease.

use std::{cmp::min, sync::Arc, time::Duration};

use lock_core::{
    Error, ErrorKind, FencingToken, Holder, Ttl,
    backend::{AttemptRef, RenewRequest},
};

use super::{Given, Looked, Visit};
use crate::service::{
    asker::Asker,
    observe::{Change, Way},
    settings::Variant,
};

impl Visit<'_, '_> {
    /// Looks. With `queue` the attempt takes a place, or keeps it. Otherwise it leaves the queue.
    pub(in crate::service) fn look(
        &mut self,
        asker: &Arc<Asker>,
        queue: bool,
    ) -> Result<Looked, Error> {
        let AttemptRef { holder, id, .. } = *asker.attempt();
        self.settle(Some(id));
        self.must_not_be_buried(holder, id)?;
        self.tokens.check_floor(asker.request().floor)?;
        if let Some(looked) = self.join(asker, queue) {
            return Ok(looked);
        }
        match self.in_the_way(holder) {
            None => self.grant(asker).map(Looked::Granted),
            Some(left) if queue => self.wait(asker, left),
            Some(left) => {
                self.leave(id);
                Ok(Looked::Held { left })
            }
        }
    }

    /// The holder has the lease already: the attempt has it, too.
    pub(super) fn join(&mut self, asker: &Arc<Asker>, queue: bool) -> Option<Looked> {
        let AttemptRef { holder, id, .. } = *asker.attempt();
        let now = self.step.now;
        let held = self.resource.held.as_mut();
        let held = held.filter(|held| held.holder == holder)?;
        let is_new = held.join(id);
        let (token, left, is_offer) = (held.token, held.left(now), held.is_offer);
        if is_new {
            let attempt = id;
            self.changed(holder, Change::Joined { token, attempt });
        }
        if is_offer && queue {
            self.resource.queue.join(asker, now, now + left);
        }
        let given = Given { token, left };
        Some(match is_offer {
            true => Looked::Offered(given),
            false => Looked::Granted(given),
        })
    }

    /// How long the resource is kept from this holder, at most, if it is.
    pub(super) fn in_the_way(&self, holder: Holder) -> Option<Duration> {
        let now = self.step.now;
        if let Some(held) = &self.resource.held {
            return (held.holder != holder).then(|| held.left(now));
        }
        // The first waiter looks by itself, or loses its place.
        let (first, asked) = self.resource.queue.first()?;
        let is_kept = self.settings.variant.keeps_for_first() && first.holder() != holder;
        is_kept.then(|| (asked + self.settings.place_ttl).since(now))
    }

    /// Nothing is in the way.
    pub(super) fn grant(&mut self, asker: &Asker) -> Result<Given, Error> {
        let AttemptRef { holder, id, .. } = *asker.attempt();
        let request = asker.request();
        let token = self.tokens.draw(0, request.floor)?;
        let left = request.ttl.get();
        let deadline = self.step.now + left;
        self.leave_all(holder, Some(id));
        self.begin(asker, token, (deadline, Way::Answer), vec![id]);
        Ok(Given { token, left })
    }

    fn wait(&mut self, asker: &Arc<Asker>, left: Duration) -> Result<Looked, Error> {
        if self.settings.variant == Variant::Unqueued {
            return Ok(Looked::Queued { left });
        }
        let AttemptRef { holder, id, .. } = *asker.attempt();
        let now = self.step.now;
        if let Some(most) = asker.request().max_waiters
            && !self.resource.queue.has(holder)
            && self.waiters() >= u64::from(most)
        {
            return Err(Error::not_applied(ErrorKind::QueueFull));
        }
        let looks_at = now + min(left, self.settings.look_again);
        if self.resource.queue.join(asker, now, looks_at) {
            self.changed(holder, Change::Queued { attempt: id });
        }
        Ok(Looked::Queued { left })
    }

    /// Makes a whole lease of an offer, or extends a whole lease. Returns whether it is there.
    pub(in crate::service) fn confirm(
        &mut self,
        holder: Holder,
        token: FencingToken,
        ttl: Ttl,
    ) -> bool {
        self.settle(None);
        let until = self.step.now + ttl.get();
        let held = self.resource.held.as_mut();
        let Some(held) = held.filter(|held| held.holder == holder && held.token == token) else {
            return false;
        };
        held.extend(until);
        let deadline = held.deadline;
        let was_offer = std::mem::take(&mut held.is_offer);
        let until = self.until(deadline);
        if was_offer {
            while let Some(_served) = self.resource.queue.take(|waiter| waiter.holder() == holder) {
            }
            self.changed(holder, Change::Confirmed { token, until });
        } else {
            self.changed(holder, Change::Renewed { token, until });
        }
        true
    }

    /// Extends a whole lease. Returns whether it is there.
    pub(in crate::service) fn renew(&mut self, request: &RenewRequest) -> bool {
        self.settle(None);
        let until = self.step.now + request.ttl.get();
        let held = self.resource.held.as_mut();
        let is_ours = |held: &&mut super::Held| !held.is_offer && held.is(&request.sequencer);
        let Some(held) = held.filter(is_ours) else {
            return false;
        };
        held.extend(until);
        let (holder, token, deadline) = (held.holder, held.token, held.deadline);
        let until = self.until(deadline);
        self.changed(holder, Change::Renewed { token, until });
        true
    }
}
