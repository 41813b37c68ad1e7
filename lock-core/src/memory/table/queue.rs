use std::collections::{HashSet, VecDeque};

use tokio::sync::oneshot;

use super::{Refusal, held::Held};
use crate::{AcquireRequest, AttemptRef, Grant, Holder, Moment};

/// Those who wait for one resource, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<Waiter>);

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) request: AcquireRequest,
    grant: oneshot::Sender<Result<Grant, Refusal>>,
}

impl Queue {
    /// Takes a place at the end, unless the queue is too long for that.
    pub(super) fn join(
        &mut self,
        request: &AcquireRequest,
    ) -> Result<oneshot::Receiver<Result<Grant, Refusal>>, Refusal> {
        if let Some(most) = request.max_waiters {
            let present = self.acquisitions();
            // An acquisition that waits already takes no more room with another attempt.
            let room = present.len() < most as usize || present.contains(&request.attempt.holder);
            if !room {
                return Err(Refusal::QueueFull);
            }
        }
        let (grant, granted) = oneshot::channel();
        let request = request.clone();
        self.0.push_back(Waiter { request, grant });
        Ok(granted)
    }

    /// Takes an attempt out; false if it is not in the queue.
    pub(super) fn leave(&mut self, attempt: &AttemptRef) -> bool {
        let waiting = self.0.len();
        self.0.retain(|waiter| waiter.request.attempt != *attempt);
        self.0.len() < waiting
    }

    /// How many acquisitions wait.
    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.acquisitions().len()).unwrap_or(u64::MAX)
    }

    /// The first waiter that has not gone away.
    pub(super) fn next(&mut self) -> Option<Waiter> {
        std::iter::from_fn(|| self.0.pop_front()).find(|waiter| !waiter.grant.is_closed())
    }

    /// Other attempts of the same acquisition may be in the queue: they have what they wait for.
    pub(super) fn tell_other_attempts(&mut self, held: &mut Held, now: Moment) {
        for waiter in std::mem::take(&mut self.0) {
            let AttemptRef { holder, id, .. } = waiter.request.attempt;
            if holder != held.holder {
                self.0.push_back(waiter);
            } else if waiter.answer(Ok(held.grant(now))) {
                held.replay(id, now);
            }
        }
    }

    fn acquisitions(&self) -> HashSet<Holder> {
        let present = self.0.iter().filter(|waiter| !waiter.grant.is_closed());
        present
            .map(|waiter| waiter.request.attempt.holder)
            .collect()
    }
}

impl Waiter {
    /// False if the waiter has gone away.
    pub(super) fn answer(self, answer: Result<Grant, Refusal>) -> bool {
        self.grant.send(answer).is_ok()
    }
}
