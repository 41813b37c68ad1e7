use crate::Holder;

/// An acquisition that may be held several times: explicit reentrancy.
///
/// All acquisitions with the same owner share one lease and one token. The first acquisition waits
/// for the lease, and while the lease lives the others get it at once. Each acquisition has a guard
/// of its own and gives back its own hold. The lease ends with the last hold. There are no thread
/// ids and no counts: the lock service keeps the set of holds, so that a repeated request neither
/// adds nor removes a hold.
///
/// An owner is for one resource at a time. Its [`id`](Owner::id) may be sent to another process,
/// which then goes on with the same lease. The id is a **secret**: anybody who knows it can act as
/// this owner.
///
/// # One writer to the store
/// All handles have the same sequencer, and a store that checks it lets each of them
/// write. You have to order their writes yourself.
///
/// # After the end
/// When the last hold has been given back, the same owner may acquire again, and gets a new token.
/// When the lease was *lost*, the owner cannot acquire again: acquiring fails with
/// [`ErrorKind::Released`](crate::ErrorKind), so that no part of the work goes on as if nothing had
/// happened. Draw a new owner.
///
/// A handle that joins a living lease does not extend it, and gets the time that is left. The
/// watchdog's next renewal extends it to the longest ttl of its handles.
///
/// If the release of a hold gets no answer, it is repeated for the ttl of its own guard, and for at
/// least a minute. Then it is given up, and the hold stays until the lease ends. If other handles
/// have a ttl of more than a minute, give all of them the same one.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), lock_core::Error> {
/// use lock_core::{LockManager, Owner};
///
/// async fn transfer(locks: &LockManager, owner: &Owner) -> Result<(), lock_core::Error> {
///     let guard = locks.acquire("account:42").owner(owner).await?;
///     debit(locks, owner).await?; // locks what we hold, and does not wait for us
///     guard.release().await?;
///     Ok(())
/// }
///
/// async fn debit(locks: &LockManager, owner: &Owner) -> Result<(), lock_core::Error> {
///     let guard = locks.acquire("account:42").owner(owner).await?;
///     guard.release().await?; // the lease goes on: it is held once more
///     Ok(())
/// }
///
/// # use std::sync::Arc;
/// # use lock_core::memory::MemoryBackend;
/// let locks = LockManager::builder().build(MemoryBackend::default())?;
/// transfer(&locks, &Owner::new()).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    id: Holder,
}

impl Owner {
    /// Draws a fresh owner.
    #[must_use]
    pub fn new() -> Self {
        Self::from_id(Holder::random())
    }

    /// The owner that another process drew.
    #[must_use]
    pub const fn from_id(id: Holder) -> Self {
        Self { id }
    }

    /// The identity of this owner. It is a secret.
    #[must_use]
    pub const fn id(&self) -> Holder {
        self.id
    }
}

/// Draws a fresh owner each time.
impl Default for Owner {
    fn default() -> Self {
        Self::new()
    }
}
