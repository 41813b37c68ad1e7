use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::Notify;

use super::schedule::{Key, Schedule};
use crate::{
    BoxFuture, Moment,
    manager::{lost::LostReason, status::LeaseStatus},
    support::lock,
};

/// The place where guards leave work for the watchdog.
///
/// Most acquisitions only leave an entry here. The watchdog is woken only if it would sleep too
/// long. So the watchdog does not delay an acquire and its release.
pub(super) struct Desk {
    /// The lock is held for a few steps at a time, never across an await. No code panics or logs
    /// while it is held.
    state: Mutex<State>,
    news: Notify,
    /// Wakes the tasks that wait for a phase.
    entered: Notify,
}

struct State {
    phase: Phase,
    leases: Schedule<Arc<LeaseStatus>>,
    next_key: Key,
    clean_ups: Vec<BoxFuture<'static, ()>>,
    /// The moment until which the watchdog sleeps.
    asleep_until: Moment,
}

/// The phases of the watchdog's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    /// The watchdog takes no new work and finishes the work that it has.
    Closed,
    Ended,
}

/// How to move a lease in the schedule.
#[derive(Clone, Copy, Debug)]
pub(super) enum Move {
    To(Moment),
    /// To this moment, if that is sooner than the present one.
    Sooner(Moment),
    Off,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                phase: Phase::Open,
                leases: Schedule::new(),
                next_key: 0,
                clean_ups: Vec::new(),
                asleep_until: Moment::NEVER,
            }),
            news: Notify::new(),
            entered: Notify::new(),
        }
    }

    /// Puts a lease into the schedule. `None` if the watchdog is closed.
    pub(super) fn add(&self, lease: &Arc<LeaseStatus>, moment: Moment) -> Option<Key> {
        let mut state = self.state();
        if state.phase != Phase::Open {
            return None;
        }
        let key = state.next_key;
        state.next_key += 1;
        state.leases.add(key, moment, Arc::clone(lease));
        self.wake_by(moment, state);
        Some(key)
    }

    /// Moves a lease to this moment, if that is sooner.
    pub(super) fn hasten(&self, key: Key, moment: Moment) {
        let mut state = self.state();
        state.leases.hasten(key, moment);
        self.wake_by(moment, state);
    }

    /// Wakes the watchdog if it would sleep past this moment.
    fn wake_by(&self, moment: Moment, mut state: MutexGuard<'_, State>) {
        if moment < state.asleep_until {
            state.asleep_until = moment;
            drop(state);
            self.news.notify_one();
        }
    }

    pub(super) fn remove(&self, key: Key) {
        self.state().leases.remove(key);
    }

    /// Leaves a clean-up for the watchdog to finish. Returns false if the watchdog is closed.
    pub(super) fn finish(&self, clean_up: BoxFuture<'static, ()>) -> bool {
        let mut state = self.state();
        let open = state.phase == Phase::Open;
        if open {
            state.clean_ups.push(clean_up);
            drop(state);
            self.news.notify_one();
        }
        open
    }

    /// Closes the desk. The leases in the schedule are lost. Returns false if the desk was closed
    /// already.
    pub(super) fn close(&self) -> bool {
        let was_open = self.enter(Phase::Closed);
        let leases: Vec<_> = self.state().leases.clear().collect();
        for lease in leases {
            lease.lose(LostReason::ShutDown);
        }
        self.news.notify_one();
        was_open
    }

    /// The leases that are due, at most this many.
    pub(super) fn due(&self, now: Moment, at_most: usize) -> Vec<(Key, Arc<LeaseStatus>)> {
        let state = self.state();
        let due = state.leases.due(now).take(at_most);
        due.map(|(key, lease)| (key, Arc::clone(lease))).collect()
    }

    pub(super) fn arrange(&self, moves: impl IntoIterator<Item = (Key, Move)>) {
        let mut state = self.state();
        let leases = &mut state.leases;
        for (key, to) in moves {
            match to {
                Move::To(moment) => leases.put_off(key, moment),
                Move::Sooner(moment) => leases.hasten(key, moment),
                Move::Off => {
                    leases.remove(key);
                }
            }
        }
    }

    pub(super) fn take_clean_ups(&self) -> Vec<BoxFuture<'static, ()>> {
        std::mem::take(&mut self.state().clean_ups)
    }

    /// The moment until which the watchdog may sleep now. `None` if it is closed and nothing is
    /// left.
    pub(super) fn fall_asleep(&self) -> Option<Moment> {
        let mut state = self.state();
        if state.phase != Phase::Open && state.clean_ups.is_empty() {
            return None;
        }
        state.asleep_until = state.leases.first().unwrap_or(Moment::NEVER);
        Some(state.asleep_until)
    }

    /// Completes when there is something new for the watchdog.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    /// Enters a phase. There is no way back to an earlier phase. Returns false if the phase was
    /// reached already.
    pub(super) fn enter(&self, phase: Phase) -> bool {
        let mut state = self.state();
        let forward = phase > state.phase;
        if forward {
            state.phase = phase;
            drop(state);
            self.entered.notify_waiters();
        }
        forward
    }

    /// Completes when the watchdog has reached this phase.
    pub(super) async fn reached(&self, phase: Phase) {
        loop {
            // Made before the phase is read, so that no change is missed.
            let entered = self.entered.notified();
            if self.state().phase >= phase {
                return;
            }
            entered.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk")
            .field("phase", &self.state().phase)
            .finish_non_exhaustive()
    }
}
