use std::{future::IntoFuture, time::Duration};

use super::{
    Acquire, LeaseGuards, LockManager,
    several::{Named, names, sorted},
};
use crate::{BoxFuture, Error, InvalidName, ResourceName, Wait, backend::Patience};

/// An acquisition of several resources, one after the other, that is being prepared: `.await` it
/// for [`LeaseGuards`]. It gets either all of them or none.
///
/// # Errors
/// Awaiting it fails as [`Acquire`] does, and with
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent if no
/// resource is named or one is named twice. Leases that were acquired before an error are given
/// back.
///
/// # Cancel safety
/// Dropping the future at any await leaves nothing behind, as with [`Acquire`].
pub type AcquireAll = Acquire<InTurn>;

/// Several resources, as [`LockManager::acquire_all`] acquires them.
#[derive(Clone, Debug)]
pub struct InTurn(Named);

impl LockManager {
    /// Acquires several resources one after the other, wherever the lock service keeps them.
    ///
    /// The resources are acquired sorted by name, with a wait in the queue for each. So such
    /// acquisitions cannot deadlock among themselves. A deadlock with a client that acquires the
    /// resources in another way is still possible. That is why the `wait` must have an end. All
    /// resources share it: when it is over, the leases acquired so far are given back. With a
    /// `wait` of zero each resource is looked at once.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::LockManager;
    /// use std::time::Duration;
    ///
    /// # use std::sync::Arc;
    /// # use lock_core::memory::MemoryBackend;
    /// let locks = LockManager::builder().build(MemoryBackend::default())?;
    /// let wait = Duration::from_secs(5);
    /// let guards = locks.acquire_all(["account:42", "account:7"], wait).await?;
    /// println!("{} and {}", guards[0].token(), guards[1].token());
    /// guards.release_all().await?;
    /// # Ok(()) }
    /// ```
    pub fn acquire_all<I>(&self, resources: I, wait: Duration) -> AcquireAll
    where
        I: IntoIterator,
        I::Item: TryInto<ResourceName>,
        <I::Item as TryInto<ResourceName>>::Error: Into<InvalidName>,
    {
        Acquire::of(self, InTurn(names(resources))).wait(wait)
    }
}

impl Acquire<InTurn> {
    async fn acquired(self) -> Result<LeaseGuards, Error> {
        let named = self.what.0?;
        let runtime = self.locks.runtime();
        let wait = self.settings.until(runtime);
        let mut guards = Vec::new();
        for resource in sorted(&named)? {
            let mut settings = self.settings.clone();
            if let Wait::Until(end) = wait {
                settings.wait = Patience::AtMost(end.since(runtime.now()));
            }
            // On an error, dropping the guards gives back the leases that were acquired before.
            let acquire = self.locks.acquire(resource);
            guards.push(
                Acquire {
                    settings,
                    ..acquire
                }
                .await?,
            );
        }
        // The first leases may have run out during the wait for the last ones.
        for guard in &guards {
            guard.remaining()?;
        }
        guards.sort_by_key(|guard| named.iter().position(|name| name == guard.resource()));
        Ok(LeaseGuards::new(guards))
    }
}

impl IntoFuture for Acquire<InTurn> {
    type Output = Result<LeaseGuards, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquired())
    }
}
