use std::collections::VecDeque;

use foldhash::HashMap;
use tokio::sync::oneshot;

use lock_core::{AcquireRequest, Attempt, AttemptId, Error, Grant, Holder};

/// The answer to an acquire.
pub(super) type Answer = Result<Attempt<Grant>, Error>;

/// The position of a waiter in the order of arrival in this process. Waiters that came before a
/// certain moment have a smaller one than the next to be given out at that moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrival(pub(super) u64);

/// The waiters of this process for one resource, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    queue: VecDeque<Waiter>,
    /// How many attempts of each acquisition wait. Hardly ever more than one.
    attempts: HashMap<Holder, usize>,
}

/// One attempt that waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) arrival: Arrival,
    /// Whether others had the lock, or were ahead, when this waiter came.
    pub(super) behind: bool,
    pub(super) request: AcquireRequest,
    /// The answer goes here.
    pub(super) answer: oneshot::Sender<Answer>,
}

impl Waiters {
    pub(super) fn push(&mut self, waiter: Waiter) {
        *self.attempts.entry(waiter.holder()).or_default() += 1;
        self.queue.push_back(waiter);
    }

    pub(super) fn head(&self) -> Option<&Waiter> {
        self.queue.front()
    }

    pub(super) fn pop(&mut self) -> Option<Waiter> {
        self.remove_at(0)
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn has(&self, holder: Holder) -> bool {
        self.attempts.contains_key(&holder)
    }

    /// Removes the waiter with this arrival.
    pub(super) fn remove(&mut self, arrival: Arrival) -> Option<Waiter> {
        self.remove_at(self.place_of(arrival)?)
    }

    /// Removes one attempt of an acquisition.
    pub(super) fn remove_attempt(&mut self, holder: Holder, attempt: AttemptId) -> Option<Waiter> {
        if !self.has(holder) {
            return None;
        }
        let is_it =
            |waiter: &Waiter| waiter.holder() == holder && waiter.request.attempt.id == attempt;
        let place = self.queue.iter().position(is_it)?;
        self.remove_at(place)
    }

    /// Removes all attempts of an acquisition.
    pub(super) fn remove_all_of(&mut self, holder: Holder) -> Vec<Waiter> {
        let attempts = self.attempts.remove(&holder).unwrap_or_default();
        let is_it = |waiter: &Waiter| waiter.holder() == holder;
        let removed = std::iter::repeat_with(|| {
            let place = self.queue.iter().position(is_it)?;
            self.queue.remove(place)
        });
        removed.take(attempts).flatten().collect()
    }

    /// Removes all waiters that came before.
    pub(super) fn remove_before(&mut self, arrival: Arrival) -> Vec<Waiter> {
        let mut removed = Vec::new();
        while self.head().is_some_and(|head| head.arrival < arrival) {
            removed.extend(self.pop());
        }
        removed
    }

    fn place_of(&self, arrival: Arrival) -> Option<usize> {
        let place = self
            .queue
            .binary_search_by_key(&arrival, |waiter| waiter.arrival);
        place.ok()
    }

    fn remove_at(&mut self, place: usize) -> Option<Waiter> {
        let waiter = self.queue.remove(place)?;
        if let Some(attempts) = self.attempts.get_mut(&waiter.holder()) {
            *attempts -= 1;
            if *attempts == 0 {
                self.attempts.remove(&waiter.holder());
            }
        }
        Some(waiter)
    }
}

impl Waiter {
    pub(super) const fn holder(&self) -> Holder {
        self.request.attempt.holder
    }

    /// Answers, and says whether anybody received the answer.
    pub(super) fn tell(self, answer: Answer) -> bool {
        self.answer.send(answer).is_ok()
    }
}
