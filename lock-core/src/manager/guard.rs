use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use tracing::debug;

use super::{
    Acquire,
    cleanup::OnDrop,
    guarded::Guarding,
    lost::{Lost, LostReason},
    status::LeaseStatus,
    watchdog::Watched,
};
use crate::{
    Error, FencingToken, Grant, Moment, Operation, Released, RenewRequest, Renewed, ResourceName,
    Runtime, Sequencer, Ttl,
    acquisition::{Answer, Event},
    backend::{LeaseSettings, StoreSide, store_side::sealed::Sealed},
};

/// A held lease, which the watchdog renews while this guard lives.
///
/// The lease may end before the guard does. [`lost`](LeaseGuard::lost) and
/// [`remaining`](LeaseGuard::remaining) show when. That is why a write needs the
/// [`sequencer`](LeaseGuard::sequencer) and a store that checks it.
///
/// # Dropping
/// Dropping the guard begins the release, ahead of anything that this task sends next, and does not
/// wait for the answer. If the release cannot be sent at once, or takes more than one request, the
/// watchdog does the rest. Call [`release`](LeaseGuard::release) to know whether and when the lease
/// was released. The lease of a leaked guard is renewed for ever, or for its
/// [`max_hold`](crate::Acquire::max_hold).
///
/// If the [`holder`](crate::Acquire::holder) was given, dropping a guard gives up its own attempt
/// only: the lease goes on if another attempt of the same holder got it. If not, that holder may
/// acquire again, but may get the lease that is just being given up.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let memory = lock_core::memory::MemoryBackend::default();
/// # let locks = lock_core::LockManager::builder().build(memory)?;
/// let guard = locks.acquire("account:42").await?;
/// println!("token {}, for {:?} unless it is renewed", guard.token(), guard.remaining());
/// tokio::select! {
///     () = work() => {}
///     lost = guard.lost() => return Err(lost.into()), // paused, cut off, or ended by force
/// }
/// guard.release().await?;
/// # async fn work() {}
/// # Ok(()) }
/// ```
#[must_use = "dropping the guard releases the lease"]
#[clippy::has_significant_drop]
pub struct LeaseGuard {
    pub(super) status: Arc<LeaseStatus>,
    watched: Option<Watched>,
    _guarding: Guarding,
    is_claimed: bool,
    pub(super) on_drop: OnDrop,
}

impl LeaseGuard {
    /// Takes over a grant: from here on the guard does the clean-up.
    pub(super) fn new(mut on_drop: OnDrop, grant: Grant, settings: &LeaseSettings) -> Self {
        let sequencer = on_drop.granted(grant.token);
        let locks = &on_drop.locks;
        let guarding = locks.guarded.enter(&sequencer);
        let status = LeaseStatus::new(sequencer, grant.lease, settings, locks);
        let status = Arc::new(status);
        // The watchdog also notices the loss of a lease that is not renewed.
        let moment = match settings.renew {
            true => grant.lease.renew_by(),
            false => grant.lease.deadline(),
        };
        let watched = locks.watchdog.watch(&status, moment);
        Self {
            status,
            watched,
            _guarding: guarding,
            is_claimed: grant.claimed,
            on_drop,
        }
    }

    /// The fencing token of this acquisition. It never changes, and reading it needs no network.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.sequencer().token()
    }

    /// Proof of the grant. Send it along with every write that the lease is to protect.
    #[must_use]
    pub fn sequencer(&self) -> &Sequencer {
        self.status.sequencer()
    }

    /// The resource that is held.
    #[must_use]
    pub fn resource(&self) -> &ResourceName {
        self.sequencer().resource()
    }

    /// The time until the deadline of the present lease, by the local clock.
    ///
    /// This time is never too long, because it is counted from before the request was sent.
    /// [`inspect`](crate::LockManager::inspect) has the time left by the lock service's own count,
    /// but that result may be out of date when it arrives.
    ///
    /// # Errors
    /// [`Lost`] from the deadline on, without asking any server. A lost lease stays lost.
    pub fn remaining(&self) -> Result<Duration, Lost> {
        let deadline = self.status.deadline()?;
        Ok(deadline.since(self.runtime().now()))
    }

    /// The deadline of the present lease: a moment of its [`runtime`](Self::runtime).
    /// [`remaining`](Self::remaining) is simpler if you need it only once.
    ///
    /// # Errors
    /// As [`remaining`](Self::remaining).
    pub fn deadline(&self) -> Result<Moment, Lost> {
        self.status.deadline()
    }

    /// Completes with the new deadline when a renewal has moved it past `deadline`. For callers
    /// that pass the deadline on, for example to a child process.
    ///
    /// # Errors
    /// [`Lost`] when the lease is lost.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let memory = lock_core::memory::MemoryBackend::default();
    /// # let locks = lock_core::LockManager::builder().build(memory)?;
    /// use lock_core::Ttl;
    ///
    /// let guard = locks.acquire("account:42").await?;
    /// let before = guard.deadline()?;
    /// guard.renew(Ttl::secs(60)).await?; // the watchdog does the same in time
    /// assert!(guard.renewed_after(before).await? > before);
    /// # Ok(()) }
    /// ```
    pub async fn renewed_after(&self, deadline: Moment) -> Result<Moment, Lost> {
        self.status.renewed_after(deadline).await
    }

    /// The runtime of the lock service. Deadlines are moments of its clock.
    #[must_use]
    pub fn runtime(&self) -> &dyn Runtime {
        &*self.on_drop.locks.runtime
    }

    /// Whether the deadline of the present lease has not passed, by the local clock. Once it has
    /// passed, this stays false.
    ///
    /// Use it to save work, not to decide whether a write is allowed.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.remaining().is_ok()
    }

    /// Renews the lease now, to a full `ttl` from now, in addition to what the watchdog does.
    ///
    /// This makes a lease longer and never shorter. The watchdog goes on with the ttl with which
    /// the lease was acquired.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if the lease is not held any more. The guard
    /// then reports the loss. [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) with the
    /// outcome unknown if no answer came.
    ///
    /// # Cancel safety
    /// It may or may not have been renewed. Renewing again is harmless.
    pub async fn renew(&self, ttl: Ttl) -> Result<(), Error> {
        self.status.deadline()?;
        let request = RenewRequest::new(self.sequencer().clone(), ttl);
        match self.on_drop.locks.renew(&request).await? {
            Renewed::Renewed(lease) => self.status.renewed(lease),
            Renewed::NotHolder => self.status.lose(LostReason::NotHolder),
        }
        self.status.deadline()?;
        Ok(())
    }

    /// Completes when the lease is lost, at the latest at its deadline.
    ///
    /// It is made for `select!`. Use it to save work, not to decide whether a write is allowed.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn lost(&self) -> Lost {
        self.status.lost().await
    }

    /// Releases the lease. If an [`Owner`](crate::Owner) holds it several times, this gives back
    /// one hold, and the lease ends with the last hold.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) with
    /// [`Outcome::Unknown`](crate::Outcome::Unknown) if no answer came. The watchdog goes on trying
    /// for a ttl, after which the lease has ended by itself. If the holder or the owner was given,
    /// others may keep the lease up, so the watchdog goes on trying for at least a minute.
    ///
    /// # Cancel safety
    /// The guard is gone and the watchdog finishes the release.
    pub async fn release(mut self) -> Result<Released, Error> {
        let held = self.status.release();
        // Until the answer has arrived, dropping `self` hands the release to the watchdog.
        let released = match self.give_back(Event::Release { held }).await? {
            Answer::Released(released) => released,
            _ => Released::NotHolder,
        };
        debug!(
            resource = self.resource().as_str(),
            token = self.token().get(),
            ?released,
            "released"
        );
        Ok(released)
    }

    async fn give_back(&mut self, how: Event) -> Result<Answer, Error> {
        let answer = self.on_drop.give_back(how).await;
        answer.map_err(|error| {
            let kind = self.on_drop.locks.backend.kind();
            error.during(Operation::Release, kind).on(self.resource())
        })
    }
}

impl Sealed for LeaseGuard {}

impl StoreSide for LeaseGuard {
    fn claiming(mut acquire: Acquire) -> Acquire {
        acquire.what.claiming = true;
        acquire
    }

    fn is_claimed(&self) -> bool {
        self.is_claimed
    }

    fn ends_within(&self) -> Result<Option<Duration>, Lost> {
        let end = self.status.ends_by()?;
        let now = self.runtime().now();
        Ok((end != Moment::NEVER).then(|| end.since(now)))
    }

    fn needs_no_tombstone(&self) -> bool {
        self.on_drop.decisions.needs_no_tombstone()
    }

    fn lease_name(&self) -> Cow<'_, str> {
        self.on_drop.locks.backend.lease_name(self.resource())
    }

    fn released_by_store(mut self) {
        self.status.release();
        self.on_drop.disarm();
    }

    fn pause_renewal(&self) {
        self.status.pause_renewal(true);
    }

    fn resume_renewal(&self) {
        self.status.pause_renewal(false);
        if let Some(watched) = &self.watched {
            watched.renew_by(self.runtime().now());
        }
    }

    async fn give_up(mut self) -> Result<(), Error> {
        self.status.release();
        self.give_back(Event::GiveUp).await.map(drop)
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
        // This must come first, because a renewal that is under way must not report the coming
        // release as a loss.
        self.status.release();
    }
}
