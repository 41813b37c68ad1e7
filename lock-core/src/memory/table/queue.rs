use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Weak},
};

use super::{Refusal, held::Held};
use crate::{
    AcquireRequest, AttemptRef, Holder, Moment,
    acquisition::{Wake, WakeUps},
};

/// The attempts that wait for one resource, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<Waiter>);

#[derive(Debug)]
struct Waiter {
    request: AcquireRequest,
    /// Gone when the caller has gone.
    wake_ups: Weak<WakeUps>,
}

impl Queue {
    /// Takes a place at the end, unless the attempt has one or the queue is too long for that.
    pub(super) fn join(
        &mut self,
        request: &AcquireRequest,
        wake_ups: &Arc<WakeUps>,
    ) -> Result<(), Refusal> {
        let mut present = self.0.iter_mut();
        if let Some(waiter) = present.find(|waiter| waiter.request.attempt == request.attempt) {
            waiter.wake_ups = Arc::downgrade(wake_ups);
            return Ok(());
        }
        if let Some(most) = request.max_waiters {
            let present = self.acquisitions();
            // An acquisition that waits already takes no more room with another attempt.
            let room = present.len() < most as usize || present.contains(&request.attempt.holder);
            if !room {
                return Err(Refusal::QueueFull);
            }
        }
        self.0.push_back(Waiter {
            request: request.clone(),
            wake_ups: Arc::downgrade(wake_ups),
        });
        Ok(())
    }

    /// Takes an attempt out, if it is in the queue. The attempt looks once more, because another
    /// caller may have cancelled it.
    pub(super) fn leave(&mut self, attempt: &AttemptRef) {
        let is_it = |waiter: &Waiter| waiter.request.attempt == *attempt;
        let Some(place) = self.0.iter().position(is_it) else {
            return;
        };
        let left = self.0.remove(place);
        if let Some(wake_ups) = left.and_then(|waiter| waiter.wake_ups.upgrade()) {
            wake_ups.wake(Wake::Look);
        }
        if place == 0 {
            self.wake_first();
        }
    }

    /// How many acquisitions wait.
    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.acquisitions().len()).unwrap_or(u64::MAX)
    }

    /// The first waiter that has not gone away.
    pub(super) fn next(&mut self) -> Option<(AcquireRequest, Arc<WakeUps>)> {
        let mut waiters = std::iter::from_fn(|| self.0.pop_front());
        waiters.find_map(|waiter| Some((waiter.request, waiter.wake_ups.upgrade()?)))
    }

    /// Has the first waiter look: the end of the present lease may be nearer than it knows.
    pub(super) fn wake_first(&mut self) {
        while let Some(waiter) = self.0.front() {
            match waiter.wake_ups.upgrade() {
                Some(wake_ups) => return wake_ups.wake(Wake::Look),
                None => self.0.pop_front(),
            };
        }
    }

    /// Other attempts of the same acquisition may be in the queue: they have the lease, too.
    pub(super) fn grant_other_attempts(&mut self, held: &mut Held, now: Moment) {
        for waiter in std::mem::take(&mut self.0) {
            let AttemptRef { holder, id, .. } = waiter.request.attempt;
            if holder != held.holder {
                self.0.push_back(waiter);
            } else if let Some(wake_ups) = waiter.wake_ups.upgrade() {
                wake_ups.wake(Wake::Granted(held.replay(id, now)));
            }
        }
    }

    fn acquisitions(&self) -> HashSet<Holder> {
        let present = self.0.iter();
        let present = present.filter(|waiter| waiter.wake_ups.strong_count() > 0);
        present
            .map(|waiter| waiter.request.attempt.holder)
            .collect()
    }
}
