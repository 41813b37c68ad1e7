use std::{borrow::Cow, time::Duration};

#[cfg(doc)]
use crate::LeaseGuard;
use crate::{Acquire, Error, Lost};

/// The store's access to the leases in front of it. Users do not need it. `fenced_store` uses it.
///
/// A store that is its lock service, too, claims the token in the step that grants the lease, and
/// releases the lease in the message that commits. Sealed: [`LeaseGuard`] has it.
pub trait StoreSide: sealed::Sealed + Sized {
    /// Asks a lock service that is a database with marks to claim the token in the step that grants
    /// it. [`is_claimed`](Self::is_claimed) says whether it did: it does not wait for transactions
    /// of older holders, and other lock services cannot claim.
    fn claiming(acquire: Acquire) -> Acquire;

    /// Whether the token was claimed when it was granted.
    fn is_claimed(&self) -> bool;

    /// The time after which the lease will have ended, however often it is renewed; `None` if it
    /// has no bound. It has one if it is not [renewed](Acquire::renew) or has a
    /// [`max_hold`](Acquire::max_hold).
    ///
    /// # Errors
    /// [`Lost`] from the deadline of the present lease on, for good, without asking any server.
    fn ends_within(&self) -> Result<Option<Duration>, Lost>;

    /// Whether no other guard has this lease and every request of it was answered. Then its release
    /// need not leave a tombstone.
    fn needs_no_tombstone(&self) -> bool;

    /// The [name](crate::backend::LockBackend::lease_name) of the lease inside the lock service.
    fn lease_name(&self) -> Cow<'_, str>;

    /// Ends the guard of a lease that the store has released. Sends nothing: a lease that was not
    /// released lasts until its ttl is over.
    fn released_by_store(self);

    /// Has the watchdog let the lease end: at the latest a ttl from now it is lost, as any lease
    /// that is not renewed. For a guard that its caller may never take back.
    fn pause_renewal(&self);

    /// Has the watchdog renew the lease again, now and later, as it was acquired. A lease that has
    /// ended meanwhile stays lost.
    fn resume_renewal(&self);

    /// Gives the lease up as dropping the guard does, and waits until that has happened. It differs
    /// from a [`release`](LeaseGuard::release) if the [`holder`](Acquire::holder) was given: the
    /// lease goes on for other attempts that got it, and the holder may acquire again.
    ///
    /// # Errors
    /// As [`LeaseGuard::release`].
    ///
    /// # Cancel safety
    /// The guard is gone and the watchdog finishes what has begun.
    fn give_up(self) -> impl Future<Output = Result<(), Error>> + Send;
}

pub(crate) mod sealed {
    #[expect(unnameable_types, reason = "what seals `StoreSide`")]
    pub trait Sealed {}
}
