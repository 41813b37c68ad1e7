use std::{sync::Arc, time::Duration};

use lock_core::{
    Holder,
    backend::{AttemptId, Moment},
};

use crate::service::asker::Asker;

/// The attempts that wait for one resource, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(Vec<Waiter>);

#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) asker: Arc<Asker>,
    /// When the waiter has looked last.
    asked: Moment,
    /// When the waiter looks again, even if no push comes.
    looks_at: Moment,
    /// The waiter did not confirm an offer, and is passed over until it asks again.
    is_suspended: bool,
}

impl Waiter {
    pub(super) fn holder(&self) -> Holder {
        self.asker.attempt().holder
    }

    pub(super) fn id(&self) -> AttemptId {
        self.asker.attempt().id
    }

    pub(super) const fn looks_at(&self) -> Moment {
        self.looks_at
    }
}

impl Queue {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.0.iter()
    }

    /// Takes a place at the end, or keeps the present place. Returns whether the place is new.
    pub(super) fn join(&mut self, asker: &Arc<Asker>, now: Moment, looks_at: Moment) -> bool {
        let id = asker.attempt().id;
        if let Some(waiter) = self.0.iter_mut().find(|waiter| waiter.id() == id) {
            (waiter.asked, waiter.looks_at, waiter.is_suspended) = (now, looks_at, false);
            return false;
        }
        self.0.push(Waiter {
            asker: Arc::clone(asker),
            asked: now,
            looks_at,
            is_suspended: false,
        });
        true
    }

    /// Takes the first waiter out for which this is true.
    pub(super) fn take(&mut self, is_it: impl FnMut(&Waiter) -> bool) -> Option<Waiter> {
        let place = self.0.iter().position(is_it)?;
        Some(self.0.remove(place))
    }

    /// Takes out a waiter that has not looked for so long.
    pub(super) fn take_lapsed(&mut self, now: Moment, after: Duration) -> Option<Waiter> {
        self.take(|waiter| waiter.asked + after <= now)
    }

    /// The waiters that have looked within this time.
    pub(super) fn living(&self, now: Moment, after: Duration) -> impl Iterator<Item = &Waiter> {
        let waiters = self.0.iter();
        waiters.filter(move |waiter| waiter.asked + after > now)
    }

    /// The first waiter that is not passed over, with its time of the last look.
    pub(super) fn first(&self) -> Option<(&Waiter, Moment)> {
        let first = self.0.iter().find(|waiter| !waiter.is_suspended)?;
        Some((first, first.asked))
    }

    /// Passes all waiters of this holder over until they ask again.
    pub(super) fn suspend(&mut self, holder: Holder) {
        let of_holder = self.0.iter_mut().filter(|waiter| waiter.holder() == holder);
        of_holder.for_each(|waiter| waiter.is_suspended = true);
    }

    /// How many acquisitions wait besides this one.
    pub(super) fn acquisitions(&self, but: Option<Holder>) -> usize {
        let holders =
            |waiters: &[Waiter], holder| waiters.iter().any(|waiter| waiter.holder() == holder);
        let all = self.0.iter().enumerate();
        let is_first_of_its_own = |(place, waiter): &(usize, &Waiter)| {
            let holder = waiter.holder();
            but != Some(holder) && !holders(&self.0[..*place], holder)
        };
        all.filter(is_first_of_its_own).count()
    }

    pub(super) fn has(&self, holder: Holder) -> bool {
        self.0.iter().any(|waiter| waiter.holder() == holder)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
