//! The events of a run of many tasks, and checks whether they can all have happened.
//!
//! Every record has the moment of a request and the moment of its answer. Two records whose times
//! overlap may have happened in either order. The checks ignore such pairs, so everything that they
//! report is a fault and no coincidence. Tokens define the order, so no order is searched for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use lock_core::{
    Sequencer,
    backend::{Moment, Runtime, TokioRuntime},
};

/// A grant, or an action under a grant, with its times.
#[derive(Clone, Debug)]
pub struct Event {
    /// The grant.
    pub grant: Sequencer,
    /// A moment before it happened.
    pub asked: Moment,
    /// A moment after it.
    pub answered: Moment,
}

impl Event {
    /// An event that was requested at `asked`, and is answered now.
    pub fn answered(grant: &Sequencer, asked: Moment) -> Self {
        Self {
            grant: grant.clone(),
            asked,
            answered: TokioRuntime.now(),
        }
    }
}

/// Two events that cannot both be right.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The event that was over before the other was requested, or the first of two equal events.
    pub earlier: Event,
    /// The other event, whose token should be greater.
    pub later: Event,
}

/// The record of a run. It only contains answered requests: a lost answer proves nothing.
#[derive(Debug, Default)]
pub struct History {
    grants: Mutex<Vec<Event>>,
    claims: Mutex<Vec<Event>>,
    writes: Mutex<Vec<Event>>,
}

impl History {
    /// Records a grant that was returned.
    pub fn granted(&self, event: Event) {
        lock(&self.grants).push(event);
    }

    /// Records a claim that the store accepted.
    pub fn claimed(&self, event: Event) {
        lock(&self.claims).push(event);
    }

    /// Records a write that the store accepted.
    pub fn written(&self, event: Event) {
        lock(&self.writes).push(event);
    }

    /// How many grants were returned.
    pub fn grants(&self) -> usize {
        lock(&self.grants).len()
    }

    /// Grants that were requested after another grant of the same resource, whose token is not
    /// smaller, had been returned: violations of G1.
    pub fn out_of_order(&self) -> Vec<Violation> {
        let grants = lock(&self.grants);
        overtaken(&grants, &grants)
    }

    /// Grants of different acquisitions with the same resource and token.
    pub fn repeated(&self) -> Vec<Violation> {
        let mut seen: BTreeMap<_, &Event> = BTreeMap::new();
        let grants = lock(&self.grants);
        let mut repeated = Vec::new();
        for later in grants.iter() {
            let key = (later.grant.resource().as_str(), later.grant.token());
            match seen.get(&key) {
                Some(earlier) if earlier.grant.holder() != later.grant.holder() => {
                    repeated.push(Violation {
                        earlier: (*earlier).clone(),
                        later: later.clone(),
                    });
                }
                _ => drop(seen.insert(key, later)),
            }
        }
        repeated
    }

    /// Writes that were accepted although a claim with a greater token had been accepted before
    /// they were requested: violations of G4.
    pub fn accepted_though_stale(&self) -> Vec<Violation> {
        overtaken(&lock(&self.claims), &lock(&self.writes))
    }

    /// Checks all of the above.
    ///
    /// # Panics
    /// If something happened that must not happen; the message says what.
    pub fn assert_sound(&self) {
        let checks = [
            ("the order of tokens is broken", self.out_of_order()),
            ("a token was granted twice", self.repeated()),
            ("a stale write was accepted", self.accepted_though_stale()),
        ];
        for (what, violations) in checks {
            let first = violations.first();
            assert!(
                first.is_none(),
                "{} times: {what}: {first:#?}",
                violations.len()
            );
        }
    }
}

/// Pairs of events of one resource and different acquisitions, of which the first was over before
/// the second was requested, but has no smaller token. At most one pair per second event.
fn overtaken(first: &[Event], second: &[Event]) -> Vec<Violation> {
    let resources: BTreeSet<_> = second.iter().map(|event| event.grant.resource()).collect();
    let mut found = Vec::new();
    for resource in resources {
        let of_resource = |events: &[Event]| {
            let mut events: Vec<_> = events
                .iter()
                .filter(|event| event.grant.resource() == resource)
                .cloned()
                .collect();
            // Greatest first.
            events.sort_by_key(|event| std::cmp::Reverse(event.grant.token()));
            events
        };
        let (first, second) = (of_resource(first), of_resource(second));
        let mut soonest = Soonest::default();
        let mut greater = first.into_iter().peekable();
        for later in second {
            while let Some(earlier) =
                greater.next_if(|earlier| earlier.grant.token() >= later.grant.token())
            {
                soonest.add(earlier);
            }
            if let Some(earlier) = soonest.of_others(&later)
                && earlier.answered < later.asked
            {
                let earlier = earlier.clone();
                found.push(Violation { earlier, later });
            }
        }
    }
    found
}

/// The event that was answered first, and the first event of any other acquisition.
#[derive(Default)]
struct Soonest {
    first: Option<Event>,
    of_another: Option<Event>,
}

impl Soonest {
    fn add(&mut self, event: Event) {
        let sooner = |than: &Option<Event>| {
            than.as_ref()
                .is_none_or(|than| event.answered < than.answered)
        };
        let is_own = |other: &Event| other.grant.holder() == event.grant.holder();
        if sooner(&self.first) {
            let former = self.first.take();
            if let Some(former) = former.filter(|former| !is_own(former)) {
                self.of_another = Some(former);
            }
            self.first = Some(event);
        } else if sooner(&self.of_another) && !self.first.as_ref().is_some_and(is_own) {
            self.of_another = Some(event);
        }
    }

    fn of_others(&self, event: &Event) -> Option<&Event> {
        let another = |other: &&Event| other.grant.holder() != event.grant.holder();
        let own_first = self.first.as_ref().filter(another);
        own_first.or(self.of_another.as_ref().filter(another))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
