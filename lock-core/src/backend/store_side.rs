use std::{borrow::Cow, time::Duration};

#[cfg(doc)]
use crate::LeaseGuard;
use crate::{Acquire, Error, Lost};

/// The store's access to the leases in front of it. Users do not need it. `fenced_store` uses it.
///
/// A store whose database is the lock service, too, claims the token in the step that grants the
/// lease, and releases the lease in the message that commits. The trait is sealed: only
/// [`LeaseGuard`] implements it.
pub trait StoreSide: sealed::Sealed + Sized {
    /// Asks a lock service that is a database with marks to claim the token in the step that grants
    /// it. [`is_claimed`](Self::is_claimed) says whether the token was claimed. It was not if the
    /// database would have had to wait for transactions of older holders, or if the lock service
    /// cannot claim.
    fn claiming(acquire: Acquire) -> Acquire;

    /// Whether the token was claimed when it was granted.
    fn is_claimed(&self) -> bool;

    /// The time after which the lease will have ended, however often it is renewed. `None` if there
    /// is no bound. There is a bound if the lease is not [renewed](Acquire::renew) or has a
    /// [`max_hold`](Acquire::max_hold).
    ///
    /// # Errors
    /// [`Lost`] from the deadline of the present lease on, permanently, without asking any server.
    fn ends_within(&self) -> Result<Option<Duration>, Lost>;

    /// Whether no other guard has this lease and every request for it was answered. Then its
    /// release need not leave a tombstone.
    fn needs_no_tombstone(&self) -> bool;

    /// The [name](crate::backend::LockBackend::lease_name) of the lease inside the lock service.
    fn lease_name(&self) -> Cow<'_, str>;

    /// Ends the guard of a lease that the store has released. Sends nothing, so a lease that the
    /// store did not release lasts until its ttl is over.
    fn released_by_store(self);

    /// Makes the watchdog let the lease end. The lease is lost at the latest a ttl from now, as any
    /// lease that is not renewed. For a guard that its caller may never take back.
    fn pause_renewal(&self);

    /// Makes the watchdog renew the lease again, now and later, with the settings with which it was
    /// acquired. A lease that has ended before this call stays lost.
    fn resume_renewal(&self);

    /// Gives the lease up as dropping the guard does, and waits until that has happened. This
    /// differs from a [`release`](LeaseGuard::release) if the [`holder`](Acquire::holder) was
    /// given: the lease goes on for other attempts that got it, and the holder may acquire again.
    ///
    /// # Errors
    /// As [`LeaseGuard::release`].
    ///
    /// # Cancel safety
    /// The guard is gone and the watchdog finishes the clean-up.
    fn give_up(self) -> impl Future<Output = Result<(), Error>> + Send;
}

pub(crate) mod sealed {
    #[expect(unnameable_types, reason = "what seals `StoreSide`")]
    pub trait Sealed {}
}
