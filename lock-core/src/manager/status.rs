use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::sync::Notify;
use tracing::warn;

use super::{
    Inner,
    lost::{Lost, LostReason},
    meter::Meter,
};
use crate::{Lease, Moment, Runtime, Sequencer, Ttl, backend::LeaseSettings, support::lock};

/// The state of one lease, shared by guard and watchdog.
#[derive(Debug)]
pub(super) struct LeaseStatus {
    sequencer: Sequencer,
    ttl: Ttl,
    since: Moment,
    renew: bool,
    hold_until: Moment,
    runtime: Arc<dyn Runtime>,
    meter: Arc<Meter>,
    /// Never held across an await, and nothing under it panics.
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Held {
        deadline: Moment,
        /// The greatest length that the lease had after the grant or a renewal.
        longest: Duration,
        /// Whether the lease has reached its `max_hold` and is not renewed any more.
        last: bool,
        /// Whether its guard has asked not to renew it for now.
        paused: bool,
    },
    Lost(LostReason),
    Released,
}

/// The step for a lease that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Renew {
        deadline: Moment,
    },
    /// Look again at the deadline.
    LetEnd {
        deadline: Moment,
    },
    /// The lease was lost or released.
    Forget,
}

impl LeaseStatus {
    pub(super) fn new(
        sequencer: Sequencer,
        lease: Lease,
        settings: &LeaseSettings,
        locks: &Inner,
    ) -> Self {
        let since = locks.runtime.now();
        locks.meter.held.up();
        Self {
            sequencer,
            ttl: settings.ttl,
            since,
            renew: settings.renew,
            hold_until: since + settings.max_hold.unwrap_or(Duration::MAX),
            runtime: Arc::clone(&locks.runtime),
            meter: Arc::clone(&locks.meter),
            state: Mutex::new(State::Held {
                deadline: lease.deadline(),
                longest: std::cmp::max(settings.ttl.get(), lease.length()),
                last: false,
                paused: false,
            }),
            changed: Notify::new(),
        }
    }

    pub(super) const fn sequencer(&self) -> &Sequencer {
        &self.sequencer
    }

    pub(super) const fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// The moment of the grant.
    pub(super) const fn since(&self) -> Moment {
        self.since
    }

    /// The deadline, as long as it has not passed. Once it has passed, the lease is lost
    /// permanently.
    pub(super) fn deadline(&self) -> Result<Moment, Lost> {
        match self.change(|state| state.expire(&*self.runtime)) {
            State::Held { deadline, .. } => Ok(deadline),
            State::Lost(reason) => Err(self.lost_by(reason)),
            // Unreachable: releasing consumes the guard.
            State::Released => Err(self.lost_by(LostReason::NotHolder)),
        }
    }

    /// The moment at which the lease will have ended, however often it is renewed until then.
    pub(super) fn ends_by(&self) -> Result<Moment, Lost> {
        let deadline = self.deadline()?;
        if !self.renew {
            return Ok(deadline);
        }
        let State::Held { longest, .. } = self.change(|_| {}) else {
            return Ok(deadline);
        };
        // The last renewal may be sent just before `hold_until`.
        Ok(std::cmp::max(deadline, self.hold_until + longest))
    }

    /// The step of the watchdog now.
    pub(super) fn due(&self) -> Due {
        let state = self.change(|state| {
            state.expire(&*self.runtime);
            if let State::Held { last, .. } = state {
                *last |= self.runtime.now() >= self.hold_until;
            }
        });
        match state {
            State::Held {
                deadline,
                last: false,
                paused: false,
                ..
            } if self.renew => Due::Renew { deadline },
            State::Held { deadline, .. } => Due::LetEnd { deadline },
            State::Lost(_) | State::Released => Due::Forget,
        }
    }

    /// A renewal succeeded. A lease that was reported lost stays lost.
    pub(super) fn renewed(&self, lease: Lease) {
        self.change(|state| {
            if let State::Held {
                deadline, longest, ..
            } = state
            {
                *deadline = std::cmp::max(*deadline, lease.deadline());
                *longest = std::cmp::max(*longest, lease.length());
            }
        });
    }

    /// Makes the watchdog let the lease end, or renew it again. Nothing brings a lost lease back.
    pub(super) fn pause_renewal(&self, pause: bool) {
        self.change(|state| {
            state.expire(&*self.runtime);
            if let State::Held { paused, .. } = state {
                *paused = pause;
            }
        });
    }

    pub(super) fn lose(&self, reason: LostReason) {
        self.change(|state| {
            if let State::Held { .. } = state {
                *state = State::Lost(reason);
            }
        });
    }

    /// The guard gives the lease back: from here on it cannot be lost. Returns whether it was held.
    pub(super) fn release(&self) -> bool {
        let state = self.change(|state| {
            state.expire(&*self.runtime);
            if let State::Held { .. } = state {
                *state = State::Released;
            }
        });
        state == State::Released
    }

    /// Completes when the lease is lost.
    pub(super) async fn lost(&self) -> Lost {
        loop {
            // No deadline is later than this one, so only a loss completes the call.
            if let Err(lost) = self.renewed_after(Moment::NEVER).await {
                return lost;
            }
        }
    }

    /// Completes when the deadline is later than this one, or when the lease is lost.
    pub(super) async fn renewed_after(&self, known: Moment) -> Result<Moment, Lost> {
        loop {
            // The notification is enabled before the state is read, so that no change is missed.
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let deadline = self.deadline()?;
            if deadline > known {
                return Ok(deadline);
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = self.runtime.sleep_until(deadline) => {}
            }
        }
    }

    /// Changes the state, wakes all tasks that wait for a change, and reports the end of the lease
    /// once.
    fn change(&self, change: impl FnOnce(&mut State)) -> State {
        let (before, after) = {
            let mut state = self.state();
            let before = *state;
            change(&mut state);
            (before, *state)
        };
        if before != after {
            self.changed.notify_waiters();
            self.report(after);
        }
        after
    }

    /// Every state but `Held` is entered once and never left.
    fn report(&self, entered: State) {
        if let State::Lost(reason) = entered {
            self.meter.lost(reason);
            warn!(
                resource = self.sequencer.resource().as_str(),
                token = self.sequencer.token().get(),
                holder = self.sequencer.holder().fingerprint(),
                reason = reason.label(),
                "lease lost"
            );
        }
        if !matches!(entered, State::Held { .. }) {
            self.meter.held.down();
            let held = || self.runtime.now().since(self.since);
            self.meter.holds.record(held);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn lost_by(&self, reason: LostReason) -> Lost {
        Lost::new(
            self.sequencer.resource().clone(),
            self.sequencer.token(),
            reason,
        )
    }
}

impl State {
    /// A lease whose deadline has passed is lost. The clock is read only for a lease that is held.
    fn expire(&mut self, runtime: &dyn Runtime) {
        if let Self::Held { deadline, last, .. } = *self
            && deadline <= runtime.now()
        {
            *self = Self::Lost(if last {
                LostReason::MaxHold
            } else {
                LostReason::Expired
            });
        }
    }
}
