use std::{
    future::IntoFuture,
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use tracing::{Instrument, debug_span};

use super::{
    Acquire, LeaseGuard, LeaseGuards, LockManager,
    cleanup::OnDrop,
    observed::Observed,
    several::{Named, names, sorted},
};
use crate::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Error, ErrorKind, Extension, Grant, Holder,
    InvalidName, LockService, ResourceName, RetryPolicy, Upkeep, Wait,
    acquisition::{self, Acquisition, Answer, Reply, Request, Requests, Sharing, Terms},
    support::lock,
};

/// An acquisition of several resources in one step that is being prepared: `.await` it for
/// [`LeaseGuards`]. It gets either all of them or none.
///
/// # Errors
/// Awaiting it fails as [`Acquire`] does, and with
/// [`ErrorKind::InvalidInput`] before anything is sent if no
/// resource is named or one is named twice, or if the lock service keeps the resources in different
/// places.
///
/// # Cancel safety
/// Dropping the future at any await leaves nothing behind, as with [`Acquire`].
pub type AcquireTogether = Acquire<Together>;

/// Several resources, as [`LockManager::acquire_together`] acquires them.
#[derive(Clone, Debug)]
pub struct Together(Named);

/// The pauses between looks whether all resources are free.
const LOOKS: RetryPolicy =
    RetryPolicy::exponential(Duration::from_millis(10)).longest(Duration::from_millis(250));

impl LockManager {
    /// Acquires several resources in one step of the lock service: all of them, or none.
    ///
    /// Nothing is held during the wait, so it delays no other client. This acquisition does not
    /// queue either: it looks again and again until all resources are free, with pauses that grow
    /// to 250 ms unless [`retry`](Acquire::retry) says otherwise. If others keep queueing for one
    /// of the resources, it may never have its turn. On Redis all resources must be in one shard:
    /// put a common `{tag}` into their names, such as `{order:7}:stock` and `{order:7}:invoice`.
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
        let wait = self.settings.until(&*inner.runtime);
        let observed = Observed::begin(inner, wait, span.clone());
        let acquired = async {
            let answer = self.asked(&named, wait).await;
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

    /// Looks again and again until all resources are free, with a new holder after each late grant.
    async fn asked(
        &self,
        named: &[ResourceName],
        wait: Wait,
    ) -> Result<Attempt<Vec<LeaseGuard>>, Error> {
        let inner = &self.locks.inner;
        let mut decisions = Acquisition::new(self.terms(wait));
        loop {
            let looks = Looks::new(&inner.backend, self.requests(named));
            let mut pending: Vec<_> = looks.attempts().map(|attempt| self.owes(attempt)).collect();
            for attempt in looks.attempts() {
                decisions.terms.spread = attempt.id.spread();
            }
            let shutdown = pin!(inner.watchdog.closed());
            let asking = &mut decisions;
            let ended = acquisition::acquire(asking, &looks, &*inner.runtime, shutdown).await;
            for each in &mut pending {
                each.decisions = decisions.clone();
            }
            if ended.answer != Answer::Late {
                let grants = looks.grants();
                let guard = |(pending, grant)| LeaseGuard::new(pending, grant, &self.settings);
                let guards = |_| pending.into_iter().zip(grants).map(guard).collect();
                return ended.attempt().map(|attempt| attempt.map(guards));
            }
            // Dropping `pending` gives the late grants back.
            decisions = decisions.afresh();
        }
    }

    /// The clean-up of the attempt for one of the resources. The attempt has to be cancelled unless
    /// it is granted.
    fn owes(&self, attempt: &AttemptRef) -> OnDrop {
        let decisions = Acquisition::asked_elsewhere(self.terms(Wait::Never));
        OnDrop::new(Arc::clone(&self.locks.inner), attempt.clone(), decisions)
    }

    fn terms(&self, wait: Wait) -> Terms {
        let policy = self.settings.retry.unwrap_or(LOOKS);
        Terms {
            polls: Some(Box::new(policy.pauses())),
            late_grants: Some(0),
            ..Terms::new(Sharing::Alone, self.settings.ttl).waiting(wait)
        }
    }

    /// One request for each resource, all of the same attempt of the same holder.
    fn requests(&self, named: &[ResourceName]) -> Vec<AcquireRequest> {
        let runtime = &*self.locks.inner.runtime;
        let holder = Holder::draw(runtime);
        let mut same = None;
        let request = |resource: &ResourceName| {
            let mut attempt = AttemptRef::new(runtime, resource.clone(), holder);
            attempt.id = *same.get_or_insert(attempt.id);
            let mut request = self.settings.request(attempt, Wait::Never);
            request.max_waiters = None;
            request.upkeep = Upkeep::None;
            request
        };
        named.iter().map(request).collect()
    }
}

/// The requests of one attempt for several resources.
struct Looks<'a> {
    backend: &'a LockService,
    requests: Vec<AcquireRequest>,
    /// The grants of the last look.
    grants: Mutex<Vec<Grant>>,
}

impl<'a> Looks<'a> {
    const fn new(backend: &'a LockService, requests: Vec<AcquireRequest>) -> Self {
        Self {
            backend,
            requests,
            grants: Mutex::new(Vec::new()),
        }
    }

    fn attempts(&self) -> impl Iterator<Item = &AttemptRef> {
        self.requests.iter().map(|request| &request.attempt)
    }

    fn grants(&self) -> Vec<Grant> {
        std::mem::take(&mut lock(&self.grants))
    }
}

impl Requests for Looks<'_> {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        if !matches!(request, Request::Look { .. }) {
            for attempt in self.attempts() {
                self.backend.cancel(attempt).await?;
            }
            return Ok(Reply::Cancelled);
        }
        match self.backend.acquire_together(&self.requests).await? {
            Attempt::Held { retry_after } => Ok(Reply::Held { left: retry_after }),
            Attempt::Granted(grants) => {
                let first_to_end = grants.iter().min_by_key(|grant| grant.lease.deadline());
                let first_to_end = first_to_end.copied();
                let is_whole = grants.len() == self.requests.len();
                *lock(&self.grants) = grants;
                let grant = first_to_end.filter(|_| is_whole);
                grant.map(Reply::Granted).ok_or_else(|| {
                    let error = Error::unknown(ErrorKind::Refused);
                    error.because("the backend granted some of the resources only")
                })
            }
        }
    }
}

impl IntoFuture for Acquire<Together> {
    type Output = Result<LeaseGuards, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquired())
    }
}
