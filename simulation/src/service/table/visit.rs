//! The end of a lease, and how the next lease begins.

use std::{cmp::min, sync::Arc};

use lock_core::{
    Error, ErrorKind, FencingToken, Holder, ResourceName,
    backend::{AttemptId, Moment, support::rule::Tokens},
};

use super::{Resource, Step, held::Held};
use crate::service::{
    asker::{Asker, Push, Pushed, Stamp},
    observe::{Change, Effect, Event, HowEnded, Way},
    settings::{Settings, Variant},
};

/// One request at one resource.
pub(in crate::service) struct Visit<'a, 'b> {
    pub(super) name: &'a ResourceName,
    pub(super) settings: &'a Settings,
    pub(super) tokens: &'a mut Tokens,
    pub(super) resource: &'a mut Resource,
    pub(super) step: &'a mut Step<'b>,
}

impl Visit<'_, '_> {
    /// Ends a lease that is over, and hands the resource on. A caller whose turn it is gets the
    /// lease by the answer to its request instead.
    pub(super) fn settle(&mut self, caller: Option<AttemptId>) {
        let now = self.step.now;
        self.forget_lapsed();
        let is_over = |held: &Held| held.deadline <= now;
        if let Some(held) = self.resource.held.take_if(|held| is_over(held)) {
            let how = match held.is_offer {
                true => {
                    self.resource.queue.suspend(held.holder);
                    HowEnded::OfferExpired
                }
                false => {
                    self.bury(held.holder, None, None);
                    HowEnded::Expired
                }
            };
            self.ended(&held, how);
        }
        if self.resource.held.is_none() {
            self.hand_on(caller);
        }
    }

    /// Ends the lease now, and hands the resource on.
    pub(super) fn end(&mut self, how: HowEnded) {
        let Some(held) = self.resource.held.take() else {
            return;
        };
        if held.is_offer {
            self.leave_all(held.holder, None);
        }
        self.ended(&held, how);
        self.hand_on(None);
    }

    /// Grants a free resource to the first waiter, unless the caller is the first, or waiters look.
    fn hand_on(&mut self, caller: Option<AttemptId>) {
        if self.settings.variant == Variant::Hints {
            return self.hint(caller);
        }
        if !self.pushes() {
            return;
        }
        while let Some((first, _)) = self.resource.queue.first() {
            let (id, asker) = (first.id(), Arc::clone(&first.asker));
            if Some(id) == caller {
                return;
            }
            match self.tokens.draw(0, asker.request().floor) {
                Ok(token) => return self.push_to(&asker, token),
                // Its next look is refused, too.
                Err(_) => self.leave(id),
            }
        }
    }

    /// Grants the resource to all attempts of this waiter's holder, and pushes it to them.
    fn push_to(&mut self, first: &Arc<Asker>, token: FencingToken) {
        let (holder, is_offer) = (
            first.attempt().holder,
            self.settings.variant == Variant::Offers,
        );
        let (way, length) = match is_offer {
            true => (
                Way::Offer,
                min(first.request().ttl.get(), self.settings.offer_ttl),
            ),
            false => (Way::Push, first.request().ttl.get()),
        };
        let pushed = Pushed {
            token,
            length,
            stamp: self.stamp(),
            is_whole: !is_offer,
        };
        let waiters = self.resource.queue.iter();
        let of_holder = waiters.filter(|waiter| waiter.holder() == holder);
        let mut holds = Vec::with_capacity(1);
        for waiter in of_holder {
            holds.push(waiter.id());
            let asker = Arc::clone(&waiter.asker);
            let pushed = Some(pushed);
            self.step.pushes.push(Push { asker, pushed });
        }
        if !is_offer {
            // They have the lease, and so they have no place any more.
            while let Some(_served) = self.resource.queue.take(|waiter| waiter.holder() == holder) {
            }
        }
        let deadline = self.step.now + length;
        self.begin(first, token, (deadline, way), holds);
    }

    /// Asks the first waiter to look, if the lease that begins may end before the waiter looks by
    /// itself, because the waiter knows only the lease before.
    fn wake_first(&mut self, holder: Holder, deadline: Moment) {
        if !self.pushes() && self.settings.variant != Variant::Hints {
            return;
        }
        let mut others = self.resource.queue.iter();
        let first = others.find(|waiter| waiter.holder() != holder);
        if let Some(first) = first.filter(|first| first.looks_at() > deadline) {
            let (asker, pushed) = (Arc::clone(&first.asker), None);
            self.step.pushes.push(Push { asker, pushed });
        }
    }

    /// Asks the first waiter to look for a free resource, unless the caller is the first.
    fn hint(&mut self, caller: Option<AttemptId>) {
        let first = self.resource.queue.first();
        if let Some((first, _)) = first.filter(|(first, _)| Some(first.id()) != caller) {
            let (asker, pushed) = (Arc::clone(&first.asker), None);
            self.step.pushes.push(Push { asker, pushed });
        }
    }

    const fn pushes(&self) -> bool {
        matches!(self.settings.variant, Variant::Pushes | Variant::Offers)
    }

    /// A lease of these attempts begins.
    pub(super) fn begin(
        &mut self,
        first: &Asker,
        token: FencingToken,
        (deadline, way): (Moment, Way),
        holds: Vec<AttemptId>,
    ) {
        let holder = first.attempt().holder;
        if first.request().floor == Some(token) {
            self.observe(Event::Lifted(self.step.by));
        }
        for (number, attempt) in holds.iter().copied().enumerate() {
            let change = match number {
                0 => Change::Granted {
                    token,
                    attempt,
                    until: self.until(deadline),
                    way,
                },
                _ => Change::Joined { token, attempt },
            };
            self.changed(holder, change);
        }
        self.resource.held = Some(Held {
            holder,
            token,
            deadline,
            is_offer: way == Way::Offer,
            metadata: first.request().metadata.clone(),
            holds,
        });
        self.wake_first(holder, deadline);
    }

    /// Takes an attempt out of the queue, if it is there.
    pub(super) fn leave(&mut self, attempt: AttemptId) {
        let left = self.resource.queue.take(|waiter| waiter.id() == attempt);
        if let Some(left) = left {
            self.changed(left.holder(), Change::Unqueued { attempt });
        }
    }

    /// Takes all attempts of a holder out of the queue. The attempt that is served just has no
    /// place any more.
    pub(super) fn leave_all(&mut self, holder: Holder, served: Option<AttemptId>) {
        let queue = &mut self.resource.queue;
        while let Some(left) = queue.take(|waiter| waiter.holder() == holder) {
            let attempt = left.id();
            if Some(attempt) != served {
                let change = Change::Unqueued { attempt };
                changed(self.step, self.name, holder, change);
            }
        }
    }

    fn forget_lapsed(&mut self) {
        let (now, after) = (self.step.now, self.settings.place_ttl);
        while let Some(lapsed) = self.resource.queue.take_lapsed(now, after) {
            let attempt = lapsed.id();
            self.changed(lapsed.holder(), Change::Unqueued { attempt });
        }
    }

    /// Refuses a request of an acquisition or an attempt that has ended.
    pub(super) fn must_not_be_buried(
        &self,
        holder: Holder,
        attempt: AttemptId,
    ) -> Result<(), Error> {
        let Some(end) = self.resource.tombstones.end_of(holder, attempt) else {
            return Ok(());
        };
        let by = self.step.by;
        self.observe(Event::Buried { by, end });
        Err(Error::not_applied(ErrorKind::Released))
    }

    fn observe(&self, event: Event) {
        self.step.observer.observe(self.step.at, event);
    }

    /// Remembers that an acquisition, or an attempt of it, has ended.
    pub(super) fn bury(
        &mut self,
        holder: Holder,
        attempt: Option<AttemptId>,
        released: Option<FencingToken>,
    ) {
        let now = self.step.now;
        let times = (now, now + self.settings.ended_ttl);
        self.resource
            .tombstones
            .bury(holder, attempt, released, times);
    }

    pub(super) fn changed(&self, holder: Holder, change: Change) {
        changed(self.step, self.name, holder, change);
    }

    fn ended(&self, held: &Held, how: HowEnded) {
        let token = held.token;
        self.changed(held.holder, Change::Ended { token, how });
    }

    /// A moment of the service's clock by the clock of the network.
    pub(super) fn until(&self, deadline: Moment) -> Moment {
        self.step.at + deadline.since(self.step.now)
    }

    pub(super) const fn stamp(&self) -> Stamp {
        self.step.stamp()
    }
}

impl Step<'_> {
    pub(in crate::service) const fn stamp(&self) -> Stamp {
        Stamp {
            number: self.number,
            at: self.now,
        }
    }
}

fn changed(step: &Step<'_>, name: &ResourceName, holder: Holder, change: Change) {
    let effect = Effect {
        by: step.by,
        resource: name.clone(),
        holder,
        change,
    };
    step.observer.observe(step.at, Event::Changed(effect));
}
