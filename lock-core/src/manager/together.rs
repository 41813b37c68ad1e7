use std::{future::IntoFuture, sync::Arc, time::Duration};

use tracing::{Instrument, debug_span};

use super::{
    Acquire, LeaseGuard, LeaseGuards, LockManager,
    cleanup::{CleanUp, OnDrop, Sharing},
    observed::Observed,
    several::{Named, names, sorted},
};
use crate::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Error, Extension, Grant, Holder, InvalidName,
    Outcome, ResourceName, RetryPolicy, Upkeep, Wait,
};

/// An acquisition of several resources in one step that is being prepared: `.await` it for
/// [`LeaseGuards`]. It gets either all of them or none.
///
/// # Errors
/// Awaiting it fails as [`Acquire`] does, and with
/// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent if no
/// resource is named or one is named twice, or if the lock service keeps the resources in different
/// places.
///
/// # Cancel safety
/// Dropping the future at any await leaves nothing behind, as with [`Acquire`].
pub type AcquireTogether = Acquire<Together>;

/// Several resources, as [`LockManager::acquire_together`] acquires them.
#[derive(Clone, Debug)]
pub struct Together(Named);

/// How often to look whether all of them are free.
const LOOKS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(10)).longest(Duration::from_millis(250));

impl LockManager {
    /// Acquires several resources in one step of the lock service: all of them, or none.
    ///
    /// Nothing is held while it waits, so it is in nobody's way. It does not queue either:
    /// it looks again and again until nobody holds any of them, with pauses that grow to 250 ms
    /// unless [`retry`](Acquire::retry) says otherwise. If others keep queueing for one of
    /// them, it may never have its turn. On Redis all of them must be in one shard: put a common
    /// `{tag}` into their names, such as `{order:7}:stock` and `{order:7}:invoice`.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), lock_core::Error> {
    /// use lock_core::LockManager;
    ///
    /// # use std::sync::Arc;
    /// # use lock_core::memory::MemoryBackend;
    /// let locks = LockManager::builder().build(MemoryBackend::default())?;
    /// let guards = locks.acquire_together(["{order:7}:stock", "{order:7}:invoice"]).await?;
    /// if let Some(stock) = guards.get("{order:7}:stock") {
    ///     println!("the token of the stock is {}", stock.token());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn acquire_together<I>(&self, resources: I) -> AcquireTogether
    where
        I: IntoIterator,
        I::Item: TryInto<ResourceName>,
        <I::Item as TryInto<ResourceName>>::Error: Into<InvalidName>,
    {
        Acquire::of(self, Together(names(resources)))
    }
}

impl Acquire<Together> {
    /// Looks again and again until all of them are free.
    async fn acquired(mut self) -> Result<LeaseGuards, Error> {
        let named = std::mem::replace(&mut self.what.0, Ok(Vec::new()))?;
        sorted(&named)?;
        self.locks
            .require(Extension::Together, "step for several resources")?;
        self.settings.check(&self.locks)?;
        let inner = &*self.locks.inner;
        let span = debug_span!(
            "acquire_together",
            resources = named.len(),
            backend = inner.backend.kind(),
        );
        let wait = self.settings.until(&*inner.clock);
        let observed = Observed::begin(inner, wait != Wait::Never, span.clone());
        let acquired = async {
            let look = || self.look(&named);
            let policy = self.settings.retry.unwrap_or(LOOKS);
            let answer = inner.polled(policy, wait, look).await;
            let answer = answer.map_err(|error| self.locks.failed(error));
            observed.end(&answer, |meter, _, guards| {
                meter.grants.add(guards.len() as u64)
            });
            match answer? {
                Attempt::Granted(guards) => Ok(LeaseGuards::new(guards)),
                Attempt::Held { retry_after } => Err(self.locks.timeout(retry_after)),
            }
        };
        acquired.instrument(span).await
    }

    /// One look, by a new holder.
    async fn look(&self, named: &[ResourceName]) -> Result<Attempt<Vec<LeaseGuard>>, Error> {
        let inner = &self.locks.inner;
        let requests = self.requests(named);
        let clean_up = |request: &AcquireRequest| {
            let attempt = request.attempt.clone();
            let patience = Sharing::Alone.patience(self.settings.ttl);
            OnDrop::new(Arc::clone(inner), CleanUp::Cancel { attempt, patience })
        };
        let mut pending: Vec<_> = requests.iter().map(clean_up).collect();
        let answer = self.asked(&requests).await;
        let nothing_changed = match &answer {
            Ok(Attempt::Granted(_)) => false,
            Ok(Attempt::Held { .. }) => true,
            Err(error) => error.outcome() == Outcome::NotApplied,
        };
        if nothing_changed {
            pending.iter_mut().for_each(OnDrop::disarm);
        }
        let grants = match answer? {
            Attempt::Granted(grants) => grants,
            Attempt::Held { retry_after } => return Ok(Attempt::Held { retry_after }),
        };
        let now = inner.clock.now();
        let of_use = grants.iter().all(|grant| grant.lease.deadline() > now);
        if grants.len() != requests.len() || !of_use {
            // Dropping `pending` gives them back.
            return Err(Error::too_late());
        }
        let mut guards = Vec::new();
        for ((request, grant), pending) in requests.iter().zip(grants).zip(&mut pending) {
            guards.push(LeaseGuard::new(
                Arc::clone(inner),
                &request.attempt,
                grant,
                Sharing::Alone,
                &self.settings,
            ));
            pending.disarm();
        }
        Ok(Attempt::Granted(guards))
    }

    /// One request for each resource, all of the same attempt of the same holder.
    fn requests(&self, named: &[ResourceName]) -> Vec<AcquireRequest> {
        let holder = Holder::random();
        let mut same = None;
        let request = |resource: &ResourceName| {
            let mut attempt = AttemptRef::new(resource.clone(), holder);
            attempt.id = *same.get_or_insert(attempt.id);
            let mut request = self.settings.request(attempt, Wait::Never);
            request.max_waiters = None;
            request.upkeep = Upkeep::None;
            request
        };
        named.iter().map(request).collect()
    }

    /// Asks, or gives up when the manager is shut down, because nobody would clean up afterwards.
    async fn asked(&self, requests: &[AcquireRequest]) -> Result<Attempt<Vec<Grant>>, Error> {
        let inner = &self.locks.inner;
        tokio::select! {
            biased;
            () = inner.watchdog.closed() => {}
            answer = inner.backend.acquire_together(requests) => return answer,
        }
        Err(inner.shut_down(requests).await)
    }
}

impl IntoFuture for Acquire<Together> {
    type Output = Result<LeaseGuards, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquired())
    }
}
