use std::{future::IntoFuture, time::Duration};

use super::{
    LeaseGuards, LockManager,
    settings::Settings,
    several::{Named, names, sorted},
};
use crate::{BoxFuture, Error, InvalidMetadata, InvalidName, Metadata, ResourceName, Ttl};

/// An acquisition of several resources, one after the other, that is being prepared: `.await` it
/// for [`LeaseGuards`]. It gets either all of them or none.
///
/// # Errors
/// Awaiting it fails as [`Acquire`](super::Acquire) does, and with
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent if no
/// resource is named or one is named twice. Leases that were acquired before an error are given
/// back.
///
/// # Cancel safety
/// Dropping the future at any await leaves nothing behind, as with [`Acquire`](super::Acquire).
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct AcquireAll<'a> {
    locks: &'a LockManager,
    named: Named,
    wait: Duration,
    settings: Settings,
}

impl LockManager {
    /// Acquires several resources one after the other, wherever the lock service keeps them.
    ///
    /// It takes them sorted by name and waits in line for each, so any number of these acquisitions
    /// do not deadlock among themselves. A client that acquires one of the resources while holding
    /// another in some other way can still be in the way. That is why there has to be an end to the
    /// `wait`, which is for all of them together: when it is over, the leases acquired so far are
    /// given back. With a `wait` of zero it looks at each of them once.
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
    pub fn acquire_all<I>(&self, resources: I, wait: Duration) -> AcquireAll<'_>
    where
        I: IntoIterator,
        I::Item: TryInto<ResourceName>,
        <I::Item as TryInto<ResourceName>>::Error: Into<InvalidName>,
    {
        AcquireAll {
            locks: self,
            named: names(resources),
            wait,
            settings: Settings::of(self),
        }
    }
}

impl<'a> AcquireAll<'a> {
    /// The ttl of each lease, as [`Acquire::ttl`](super::Acquire::ttl).
    pub const fn ttl(mut self, ttl: Ttl) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// Replaces the wait for all of them together, such as in a clone that acquires once more.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Whether the watchdog renews the leases, as [`Acquire::renew`](super::Acquire::renew).
    pub const fn renew(mut self, renew: bool) -> Self {
        self.settings.renew = renew;
        self
    }

    /// How long the leases are kept up, as [`Acquire::max_hold`](super::Acquire::max_hold).
    pub const fn max_hold(mut self, max_hold: Duration) -> Self {
        self.settings.max_hold = Some(max_hold);
        self
    }

    /// A note for each lease, as [`Acquire::metadata`](super::Acquire::metadata).
    pub fn metadata<M>(mut self, metadata: M) -> Self
    where
        M: TryInto<Metadata>,
        M::Error: Into<InvalidMetadata>,
    {
        self.settings.metadata = Some(metadata.try_into().map_err(Into::into));
        self
    }

    /// The greatest number of waiters for each of them, as
    /// [`Acquire::max_waiters`](super::Acquire::max_waiters).
    pub const fn max_waiters(mut self, max_waiters: u32) -> Self {
        self.settings.max_waiters = Some(max_waiters);
        self
    }

    async fn acquired(self) -> Result<LeaseGuards, Error> {
        let named = self.named?;
        let clock = self.locks.clock();
        let until = clock.now() + self.wait;
        let mut guards = Vec::new();
        for resource in sorted(&named)? {
            let mut settings = self.settings.clone();
            settings.wait = Some(until.since(clock.now()));
            // On an error, dropping the guards gives back the leases that were acquired before.
            guards.push(self.locks.acquire(resource).with(settings).await?);
        }
        // The first ones may have run out while the last ones were waited for.
        for guard in &guards {
            guard.remaining()?;
        }
        guards.sort_by_key(|guard| named.iter().position(|name| name == guard.resource()));
        Ok(LeaseGuards::new(guards))
    }
}

impl<'a> IntoFuture for AcquireAll<'a> {
    type Output = Result<LeaseGuards, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquired())
    }
}
