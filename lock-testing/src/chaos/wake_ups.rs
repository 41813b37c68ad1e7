use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::sync::Notify;

use lock_core::{
    ResourceName,
    backend::{AttemptId, AttemptRef, Requests, Wake, support::lock},
};

/// The fault of each wake-up that a lock service sends to a waiting attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WakeFault {
    /// The wake-up arrives.
    #[default]
    Pass,
    /// The wake-up arrives twice.
    Doubled,
    /// Other wake-ups arrive before this one, although it is not the turn of the attempt.
    Early,
    /// The wake-up also arrives at another attempt for the same resource. A full lease does not,
    /// because a lock service in this process hands it only to its own attempt.
    Overheard,
}

/// The number of times that an attempt is woken early.
const EARLY: usize = 3;

/// The wake-ups of all attempts of a [`Chaos`](super::Chaos).
#[derive(Debug, Default)]
pub(super) struct WakeUps {
    fault: Mutex<WakeFault>,
    faults: AtomicUsize,
    /// Whether a full lease was handed over.
    whole: AtomicBool,
    /// The wake-ups that are also on their way to another attempt.
    overheard: Mutex<Vec<(AttemptRef, Wake)>>,
    arrived: Notify,
}

/// The wake-ups of one attempt.
#[derive(Debug, Default)]
pub(super) struct Heard {
    early: AtomicUsize,
    again: Mutex<Option<Wake>>,
}

impl WakeUps {
    pub(super) fn set(&self, fault: WakeFault) {
        *lock(&self.fault) = fault;
    }

    pub(super) fn was_whole(&self) -> bool {
        self.whole.load(Ordering::Relaxed)
    }

    pub(super) fn faults(&self) -> usize {
        self.faults.load(Ordering::Relaxed)
    }

    /// The next wake-up of an attempt.
    pub(super) async fn next(
        &self,
        attempt: &AttemptRef,
        heard: &Heard,
        requests: &impl Requests,
    ) -> Wake {
        let fault = *lock(&self.fault);
        if let Some(again) = lock(&heard.again).take() {
            self.count();
            return again;
        }
        match fault {
            WakeFault::Pass => requests.woken().await,
            WakeFault::Doubled => {
                let wake = self.heard(requests).await;
                *lock(&heard.again) = Some(wake);
                wake
            }
            WakeFault::Early if heard.early.fetch_add(1, Ordering::Relaxed) < EARLY => {
                self.count();
                Wake::Look
            }
            WakeFault::Early => requests.woken().await,
            WakeFault::Overheard => self.overheard(attempt, requests).await,
        }
    }

    async fn heard(&self, requests: &impl Requests) -> Wake {
        let wake = requests.woken().await;
        let is_whole = matches!(wake, Wake::Granted(_));
        self.whole.fetch_or(is_whole, Ordering::Relaxed);
        wake
    }

    async fn overheard(&self, attempt: &AttemptRef, requests: &impl Requests) -> Wake {
        let wake = tokio::select! {
            biased;
            wake = self.of_another(&attempt.resource, attempt.id) => return wake,
            wake = self.heard(requests) => wake,
        };
        if !matches!(wake, Wake::Granted(_)) {
            lock(&self.overheard).push((attempt.clone(), wake));
            self.arrived.notify_waiters();
        }
        wake
    }

    async fn of_another(&self, resource: &ResourceName, id: AttemptId) -> Wake {
        loop {
            let arrived = self.arrived.notified();
            {
                let mut overheard = lock(&self.overheard);
                let is_of_another =
                    |(of, _): &(AttemptRef, Wake)| of.resource == *resource && of.id != id;
                if let Some(place) = overheard.iter().position(is_of_another) {
                    self.count();
                    return overheard.swap_remove(place).1;
                }
            }
            arrived.await;
        }
    }

    fn count(&self) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }
}
