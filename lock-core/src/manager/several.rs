use std::{future::IntoFuture, time::Duration};

use super::{
    LeaseGuards, LockManager,
    settings::{Settings, invalid},
};
use crate::{
    BoxFuture, Error, ErrorKind, InvalidMetadata, InvalidName, Metadata, Operation, ResourceName,
    RetryPolicy, Ttl, Wait,
};

/// An acquisition of several resources that is being prepared: `.await` it for [`LeaseGuards`]. It
/// gets either all of them or none.
///
/// # Errors
/// Awaiting it fails as [`Acquire`](super::Acquire) does. [`ErrorKind::InvalidInput`] before
/// anything is sent if no resource is named or one is named twice; with `acquire_all`, also if
/// there is no [`wait`](AcquireSeveral::wait); with `acquire_together`, also if the lock service
/// keeps the resources in different places. Leases that were acquired before an error are given
/// back.
///
/// # Cancel safety
/// Dropping the future at any await leaves nothing behind, as with [`Acquire`](super::Acquire).
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct AcquireSeveral<'a> {
    pub(super) locks: &'a LockManager,
    resources: Result<Vec<ResourceName>, InvalidName>,
    order: Order,
    pub(super) settings: Settings,
    pub(super) retry: RetryPolicy,
}

#[derive(Clone, Copy, Debug)]
enum Order {
    OneByOne,
    Together,
}

/// How often to look whether all of them are free.
const LOOKS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(10)).longest(Duration::from_millis(250));

impl LockManager {
    /// Acquires several resources one after the other, wherever the lock service keeps them.
    ///
    /// It takes them sorted by name and waits in line for each, so any number of these acquisitions
    /// do not deadlock among themselves. A client that acquires one of the resources while holding
    /// another in some other way can still be in the way. That is why it needs a
    /// [`wait`](AcquireSeveral::wait), which covers all of them together: when it is over, the
    /// leases acquired so far are given back.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(feature = "memory")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::LockManager;
    /// use std::time::Duration;
    ///
    /// let locks = LockManager::connect("memory:").await?;
    /// let acquire = locks.acquire_all(["account:42", "account:7"]);
    /// let guards = acquire.wait(Duration::from_secs(5)).await?;
    /// println!("{} and {}", guards[0].token(), guards[1].token());
    /// guards.release_all().await?;
    /// # Ok(()) }
    /// # #[cfg(not(feature = "memory"))]
    /// # fn main() {}
    /// ```
    pub fn acquire_all<I>(&self, resources: I) -> AcquireSeveral<'_>
    where
        I: IntoIterator,
        I::Item: TryInto<ResourceName>,
        <I::Item as TryInto<ResourceName>>::Error: Into<InvalidName>,
    {
        AcquireSeveral::new(self, names(resources), Order::OneByOne)
    }

    /// Acquires several resources in one step of the lock service: all of them, or none.
    ///
    /// Nothing is held while it waits, so it is in nobody's way. It takes no place in line either:
    /// it looks again and again until nobody holds any of them, with pauses that grow to 250 ms
    /// unless [`retry`](AcquireSeveral::retry) says otherwise. If others keep queueing for one of
    /// them, it may never have its turn. On Redis all of them must be in one shard: put a common
    /// `{tag}` into their names, such as `{order:7}:stock` and `{order:7}:invoice`.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(feature = "memory")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::LockManager;
    ///
    /// let locks = LockManager::connect("memory:").await?;
    /// let guards = locks.acquire_together(["{order:7}:stock", "{order:7}:invoice"]).await?;
    /// if let Some(stock) = guards.get("{order:7}:stock") {
    ///     println!("the token of the stock is {}", stock.token());
    /// }
    /// # Ok(()) }
    /// # #[cfg(not(feature = "memory"))]
    /// # fn main() {}
    /// ```
    pub fn acquire_together<I>(&self, resources: I) -> AcquireSeveral<'_>
    where
        I: IntoIterator,
        I::Item: TryInto<ResourceName>,
        <I::Item as TryInto<ResourceName>>::Error: Into<InvalidName>,
    {
        AcquireSeveral::new(self, names(resources), Order::Together)
    }
}

impl<'a> AcquireSeveral<'a> {
    fn new(
        locks: &'a LockManager,
        resources: Result<Vec<ResourceName>, InvalidName>,
        order: Order,
    ) -> Self {
        Self {
            locks,
            resources,
            order,
            settings: Settings::of(locks),
            retry: LOOKS,
        }
    }

    /// The length of each lease, as [`Acquire::ttl`](super::Acquire::ttl).
    pub const fn ttl(mut self, ttl: Ttl) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// How long to wait for all of them. For `acquire_together` it defaults to no bound.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = Some(wait);
        self
    }

    /// [`acquire_together`](super::LockManager::acquire_together) only: how often to check whether
    /// all are free ([`acquire_all`](super::LockManager::acquire_all) waits in line). The limit of
    /// the policy ends the wait, too.
    pub const fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
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

    /// A delay after each lease, as [`Acquire::lock_delay`](super::Acquire::lock_delay).
    pub const fn lock_delay(mut self, delay: Duration) -> Self {
        self.settings.lock_delay = delay;
        self
    }

    async fn acquired(mut self) -> Result<LeaseGuards, Error> {
        let named = std::mem::replace(&mut self.resources, Ok(Vec::new()))?;
        let mut sorted: Vec<_> = named.iter().collect();
        sorted.sort();
        if sorted.is_empty() {
            return Err(invalid("no resource is named"));
        }
        let mut neighbours = sorted.iter().zip(sorted.iter().skip(1));
        if let Some((twice, _)) = neighbours.find(|(one, other)| one == other) {
            return Err(invalid("the resource is named twice").on(twice));
        }
        match self.order {
            Order::OneByOne => self.one_by_one(&named, &sorted).await,
            Order::Together => self.together(&named).await,
        }
    }

    async fn one_by_one(
        &self,
        named: &[ResourceName],
        sorted: &[&ResourceName],
    ) -> Result<LeaseGuards, Error> {
        let clock = self.locks.clock();
        let until = match self.settings.until(clock) {
            Wait::Until(until) => until,
            Wait::Never => clock.now(),
            Wait::Forever => return Err(invalid("acquire_all needs a wait with an end")),
        };
        let mut guards = Vec::new();
        for resource in sorted {
            let mut settings = self.settings.clone();
            settings.wait = Some(until.since(clock.now()));
            // On an error, dropping the guards gives back the leases that were acquired before.
            guards.push(self.locks.acquire(*resource).with(settings).await?);
        }
        // The first ones may have run out while the last ones were waited for.
        for guard in &guards {
            guard.remaining()?;
        }
        guards.sort_by_key(|guard| named.iter().position(|name| name == guard.resource()));
        Ok(LeaseGuards::new(guards))
    }

    /// The error when the wait is over.
    pub(super) fn timeout(&self, retry_after: Duration) -> Error {
        let kind = self.locks.backend_kind();
        Error::not_applied(ErrorKind::WaitTimeout, Operation::Acquire, kind)
            .with_retry_after(retry_after)
    }
}

impl<'a> IntoFuture for AcquireSeveral<'a> {
    type Output = Result<LeaseGuards, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquired())
    }
}

fn names<I>(resources: I) -> Result<Vec<ResourceName>, InvalidName>
where
    I: IntoIterator,
    I::Item: TryInto<ResourceName>,
    <I::Item as TryInto<ResourceName>>::Error: Into<InvalidName>,
{
    let names = resources.into_iter();
    names
        .map(|name| name.try_into().map_err(Into::into))
        .collect()
}
