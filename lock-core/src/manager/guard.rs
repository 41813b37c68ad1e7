use std::{fmt, sync::Arc, time::Duration};

use super::{
    DetachedLease, Inner,
    cleanup::{CleanUp, HeldLease, OnDrop},
    lost::Lost,
    status::LeaseStatus,
    watchdog::Command,
};
use crate::{AttemptRef, Error, FencingToken, Grant, Released, ResourceName, Sequencer, Ttl};

/// A lease that is held, and kept up by the watchdog while this guard lives.
///
/// The lease may end before the guard does: that is what [`lost`](LeaseGuard::lost) and
/// [`remaining`](LeaseGuard::remaining) tell, and why a write needs the
/// [`sequencer`](LeaseGuard::sequencer) and a store that checks it.
///
/// # Dropping
/// Dropping the guard sends the watchdog a message and returns; the release follows shortly. Call
/// [`release`](LeaseGuard::release) to know when, and whether, it happened. A guard that is leaked
/// is renewed for ever.
#[must_use = "dropping the guard releases the lease"]
#[clippy::has_significant_drop]
pub struct LeaseGuard {
    status: Arc<LeaseStatus>,
    held: HeldLease,
    on_drop: OnDrop,
}

/// On what terms a lease is held.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) ttl: Ttl,
    /// Whether the watchdog keeps it up.
    pub(super) renew: bool,
    /// Whether the acquisition may be held several times over.
    pub(super) shared: bool,
}

impl LeaseGuard {
    /// Takes over a grant: from here on the guard is what cleans up.
    pub(super) fn new(
        locks: Arc<Inner>,
        attempt: &AttemptRef,
        grant: Grant,
        Terms { ttl, renew, shared }: Terms,
    ) -> Self {
        let sequencer = Sequencer::new(
            locks.issuer.clone(),
            attempt.resource.clone(),
            grant.token,
            attempt.holder,
        );
        let clock = Arc::clone(&locks.clock);
        let status = Arc::new(LeaseStatus::new(sequencer.clone(), ttl, grant.lease, clock));
        if renew {
            let watch = Command::Watch(Arc::clone(&status), grant.lease.renew_by());
            if !locks.watchdog.send(watch) {
                tracing::debug!("the watchdog has ended: the lease runs out by its ttl");
            }
        }
        let held = HeldLease {
            sequencer,
            attempt: attempt.id,
            shared,
        };
        let lease = held.clone();
        Self {
            status,
            held,
            on_drop: OnDrop::new(locks, CleanUp::Release { lease, ttl }),
        }
    }

    /// The fencing token of this acquisition. It needs no network and never changes.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.sequencer().token()
    }

    /// What to send along with every write that this lease is to cover.
    #[must_use]
    pub fn sequencer(&self) -> &Sequencer {
        self.status.sequencer()
    }

    /// What is held.
    #[must_use]
    pub fn resource(&self) -> &ResourceName {
        self.sequencer().resource()
    }

    /// The time until the deadline of the present lease, by the local clock.
    ///
    /// # Errors
    /// [`Lost`] from the deadline on, for good, without asking any server.
    pub fn remaining(&self) -> Result<Duration, Lost> {
        let deadline = self.status.deadline()?;
        Ok(deadline.since(self.on_drop.locks.clock.now()))
    }

    /// Completes when the lease is lost, at the latest at its deadline.
    ///
    /// Made for `select!`: it is to save work, not to decide whether a write is allowed.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn lost(&self) -> Lost {
        self.status.lost().await
    }

    /// Gives up the guard and keeps the lease: whoever has the sequencer renews and releases it.
    ///
    /// The watchdog stops renewing.
    #[must_use = "nothing renews or releases the lease any more"]
    pub fn detach(mut self) -> DetachedLease {
        self.on_drop.disarm();
        DetachedLease {
            sequencer: self.sequencer().clone(),
            ttl: self.status.ttl(),
            remaining: self.remaining().unwrap_or_default(),
        }
    }

    /// Releases the lease.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) with
    /// [`Outcome::Unknown`](crate::Outcome::Unknown) if no answer came; the watchdog goes on trying
    /// until the lease would have ended by itself.
    ///
    /// # Cancel safety
    /// The guard is gone and the watchdog finishes the release.
    pub async fn release(mut self) -> Result<Released, Error> {
        self.status.release();
        let backend = Arc::clone(&self.on_drop.locks.backend);
        // Until the answer is here, dropping `self` hands the release to the watchdog.
        let released = self.held.release(&*backend).await?;
        match released {
            Released::Released => self.on_drop.disarm(),
            Released::NotHolder => self.on_drop.turn_into(self.held.cancel(self.status.ttl())),
        }
        Ok(released)
    }
}

impl fmt::Debug for LeaseGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseGuard")
            .field("sequencer", self.sequencer())
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        // First: a renewal that is under way must not report the coming release as a loss.
        self.status.release();
    }
}
