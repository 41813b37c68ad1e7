use std::sync::Arc;

use tokio::sync::watch;

use super::lost::{Lost, LostReason};
use crate::{Clock, Lease, Moment, Sequencer, Ttl};

/// What guard and watchdog both know of one lease.
#[derive(Debug)]
pub(super) struct LeaseStatus {
    sequencer: Sequencer,
    ttl: Ttl,
    clock: Arc<dyn Clock>,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Held { deadline: Moment },
    Lost(LostReason),
    Released,
}

impl LeaseStatus {
    pub(super) fn new(sequencer: Sequencer, ttl: Ttl, lease: Lease, clock: Arc<dyn Clock>) -> Self {
        let state = watch::Sender::new(State::Held {
            deadline: lease.deadline(),
        });
        Self {
            sequencer,
            ttl,
            clock,
            state,
        }
    }

    pub(super) const fn sequencer(&self) -> &Sequencer {
        &self.sequencer
    }

    pub(super) const fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// The deadline, as long as it has not passed. Once it has, the lease is lost for good.
    pub(super) fn deadline(&self) -> Result<Moment, Lost> {
        let state = *self.state.borrow();
        match state {
            State::Held { deadline } if deadline > self.clock.now() => Ok(deadline),
            State::Held { .. } => {
                self.lose(LostReason::Expired);
                Err(self.lost_by(LostReason::Expired))
            }
            State::Lost(reason) => Err(self.lost_by(reason)),
            State::Released => Err(self.lost_by(LostReason::NotHolder)),
        }
    }

    /// Whether the lease is neither lost nor released.
    pub(super) fn is_held(&self) -> bool {
        self.deadline().is_ok()
    }

    /// A renewal succeeded. A lease that was reported lost stays lost.
    pub(super) fn renewed(&self, lease: Lease) {
        self.state.send_if_modified(|state| match state {
            State::Held { deadline } if lease.deadline() > *deadline => {
                *deadline = lease.deadline();
                true
            }
            _ => false,
        });
    }

    pub(super) fn lose(&self, reason: LostReason) {
        self.state.send_if_modified(|state| {
            let held = matches!(state, State::Held { .. });
            if held {
                *state = State::Lost(reason);
            }
            held
        });
    }

    /// The guard gives the lease back: from here on there is nothing to lose.
    pub(super) fn release(&self) {
        self.state.send_replace(State::Released);
    }

    /// Completes when the lease is lost.
    pub(super) async fn lost(&self) -> Lost {
        let mut changes = self.state.subscribe();
        loop {
            changes.mark_unchanged();
            let deadline = match self.deadline() {
                Ok(deadline) => deadline,
                Err(lost) => return lost,
            };
            tokio::select! {
                // The sender is `self`, so this cannot fail.
                _ = changes.changed() => {}
                () = self.clock.sleep_until(deadline) => {}
            }
        }
    }

    fn lost_by(&self, reason: LostReason) -> Lost {
        Lost::new(
            self.sequencer.resource().clone(),
            self.sequencer.token(),
            reason,
        )
    }
}
