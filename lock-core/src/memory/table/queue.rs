use std::{
    collections::HashSet,
    sync::{Arc, Weak},
};

use crate::{
    AcquireRequest, AttemptId, Error, Holder,
    acquisition::{Reply, Wake, WakeUps},
    backend::support::rule::QueueView,
};

/// The attempts that wait for one resource, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Queue(Vec<Waiter>);

#[derive(Debug)]
struct Waiter {
    request: AcquireRequest,
    /// `None` on upgrade when the caller has gone.
    wake_ups: Weak<WakeUps>,
}

impl Queue {
    /// Takes a place at the end, or keeps the place that the attempt has.
    pub(super) fn keep(&mut self, request: &AcquireRequest, wake_ups: &Arc<WakeUps>) {
        let wake_ups = Arc::downgrade(wake_ups);
        let mut present = self.0.iter_mut();
        match present.find(|waiter| waiter.request.attempt == request.attempt) {
            Some(waiter) => waiter.wake_ups = wake_ups,
            None => self.0.push(Waiter {
                request: request.clone(),
                wake_ups,
            }),
        }
    }

    /// Takes an attempt out, if it is in the queue. The attempt looks once more, because another
    /// caller may have cancelled it.
    pub(super) fn leave(&mut self, holder: Holder, id: AttemptId) {
        let is_it = |waiter: &Waiter| {
            let attempt = &waiter.request.attempt;
            attempt.id == id && attempt.holder == holder
        };
        let Some(place) = self.0.iter().position(is_it) else {
            return;
        };
        if let Some(wake_ups) = self.0.remove(place).wake_ups.upgrade() {
            wake_ups.wake(Wake::Look);
        }
        if place == 0 {
            self.wake_first();
        }
    }

    pub(super) fn view(&self, holder: Holder) -> QueueView {
        let (is_in, all) = (self.acquisitions().contains(&holder), self.len());
        QueueView {
            is_behind: false,
            is_in,
            others: all - u64::from(is_in),
        }
    }

    /// How many acquisitions wait.
    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.acquisitions().len()).unwrap_or(u64::MAX)
    }

    /// Looks once for each waiter in turn. A waiter that gets the lease, or an error, is woken and
    /// leaves the queue.
    pub(super) fn hand_on(
        &mut self,
        mut look: impl FnMut(&AcquireRequest) -> Result<Reply, Error>,
    ) {
        self.0.retain(|waiter| {
            let Some(wake_ups) = waiter.wake_ups.upgrade() else {
                return false;
            };
            let wake = match look(&waiter.request) {
                Ok(Reply::Granted(grant)) => Wake::Granted(grant),
                Ok(_held) => return true,
                // The next look of this waiter is refused, too.
                Err(_) => Wake::Look,
            };
            wake_ups.wake(wake);
            false
        });
        self.wake_first();
    }

    /// Makes the first waiter look, because the end of the present lease may be nearer than the
    /// waiter knows.
    fn wake_first(&mut self) {
        let mut present = self.0.iter();
        if let Some(wake_ups) = present.find_map(|waiter| waiter.wake_ups.upgrade()) {
            wake_ups.wake(Wake::Look);
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
