use std::{future::IntoFuture, sync::Arc, time::Duration};

use tracing::Instrument;

use super::{
    LockManager,
    cleanup::{CleanUp, OnDrop},
    guard::LeaseGuard,
    observed::{self, Observed},
    owner::Owner,
    settings::Settings,
};
use crate::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Error, ErrorKind, Extension, FencingToken,
    Grant, Holder, InvalidMetadata, InvalidName, Metadata, Operation, Outcome, ResourceName,
    RetryPolicy, Sequencer, Ttl, Upkeep, Wait,
};

/// An acquisition that is being prepared: `.await` it for a [`LeaseGuard`].
///
/// | while somebody else holds the resource | |
/// |---|---|
/// | `.await` | waits in line, without bound |
/// | [`.wait(time)`](Acquire::wait)`.await` | waits in line, for so long |
/// | [`.retry(policy)`](Acquire::retry)`.await` | looks again and again, out of line |
/// | [`.try_now()`](Acquire::try_now)`.await` | does not wait |
///
/// # Errors
/// Awaiting it fails with [`ErrorKind::WaitTimeout`] when the wait is over,
/// [`ErrorKind::QueueFull`] when too many wait, [`ErrorKind::Released`] when its holder or owner
/// has ended, [`ErrorKind::InvalidInput`] for a name or a setting that is not allowed,
/// [`ErrorKind::Unsupported`] for one that the lock service does not have,
/// [`ErrorKind::Unavailable`] when it does not answer, [`ErrorKind::FloorImplausible`],
/// [`ErrorKind::CounterBroken`] or [`ErrorKind::TokensExhausted`] for its token, and
/// [`ErrorKind::ShutDown`].
///
/// # Cancel safety
/// Dropping the future at any await leaves nothing behind: you lose your place in line, and a lease
/// that may have been granted meanwhile is given back by the watchdog.
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct Acquire<'a> {
    pub(super) locks: &'a LockManager,
    resource: Result<ResourceName, InvalidName>,
    identity: Identity,
    pub(super) settings: Settings,
    retry: Option<RetryPolicy>,
    floor: Option<FencingToken>,
}

/// Who acquires.
#[derive(Clone, Copy, Debug)]
enum Identity {
    /// Somebody new, whom nobody else knows.
    Fresh,
    /// Somebody who may be known elsewhere.
    Known(Holder),
    /// The same, and may hold it several times over.
    Owner(Holder),
}

/// A lease without guard and watchdog: whoever has its sequencer renews and releases it.
///
/// What a gateway hands to its clients. It ends by itself unless it is renewed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DetachedLease {
    /// Proof of the grant. Its holder is a secret.
    pub sequencer: Sequencer,
    /// The length that was asked for.
    pub ttl: Ttl,
    /// The time left when the grant arrived.
    pub remaining: Duration,
}

/// A grant, and what cancels it unless it is disarmed.
pub(super) struct Granted {
    pub(super) pending: OnDrop,
    pub(super) attempt: AttemptRef,
    pub(super) grant: Grant,
}

/// How many grants may arrive after their own end before we say that the ttl is too short.
const LATE_GRANTS_MAX: u32 = 2;

impl<'a> Acquire<'a> {
    pub(super) fn new(locks: &'a LockManager, resource: Result<ResourceName, InvalidName>) -> Self {
        Self {
            locks,
            resource,
            identity: Identity::Fresh,
            settings: Settings::of(locks),
            retry: None,
            floor: None,
        }
    }

    /// The length of the lease. Defaults to 10 s. It is renewed all the same.
    pub const fn ttl(mut self, ttl: Ttl) -> Self {
        self.settings.ttl = ttl;
        self
    }

    /// How long to wait for a resource that is held. Defaults to: without bound.
    ///
    /// A lock service that does not answer is not waited for without bound, see its documentation.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = Some(wait);
        self
    }

    /// Looks again and again, with pauses by this policy, instead of waiting in line.
    ///
    /// For those who do not want to queue. Takes no place in line: queued waiters go first, so
    /// under contention it may starve. It ends like any wait, with [`ErrorKind::WaitTimeout`], when
    /// the policy's limit is reached or the [`wait`](Acquire::wait) is over, whichever is sooner. A
    /// pause that would end later is cut short for a last look. Pauses follow the policy only; the
    /// lease's expiry is ignored, because most leases are renewed before, and because all who went
    /// by it would come back at the same time. Other errors are not retried.
    pub const fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// The least token that is of use.
    ///
    /// For a store that has seen greater tokens than the lock service remembers.
    pub const fn at_least(mut self, floor: FencingToken) -> Self {
        self.floor = Some(floor);
        self
    }

    /// Whether the watchdog renews the lease. Defaults to true; nothing else switches it off.
    pub const fn renew(mut self, renew: bool) -> Self {
        self.settings.renew = renew;
        self
    }

    /// How long the watchdog keeps the lease up. Defaults to what the manager was
    /// [built](super::LockManagerBuilder::max_hold) with, without bound if that says nothing.
    ///
    /// For a section that hangs while its process lives, which would otherwise be renewed for ever.
    /// From this time after the grant on, no renewal is sent. The lease then runs out by itself, at
    /// the latest one ttl later, and is lost with [`LostReason::MaxHold`](crate::LostReason); until
    /// then it is held as ever. It has its ttl at least, however short this is.
    pub const fn max_hold(mut self, max_hold: Duration) -> Self {
        self.settings.max_hold = Some(max_hold);
        self
    }

    /// A note for whoever [inspects](LockManager::inspect) or [lists](LockManager::list), such as a
    /// host name. It is no secret, and programs must not decide by it.
    ///
    /// One that [cannot be kept](Metadata) is an error before anything is sent.
    pub fn metadata<M>(mut self, metadata: M) -> Self
    where
        M: TryInto<Metadata>,
        M::Error: Into<InvalidMetadata>,
    {
        self.settings.metadata = Some(metadata.try_into().map_err(Into::into));
        self
    }

    /// For how long nobody else is granted the resource after the lease has *run out*. Defaults to
    /// not at all, and is at most 24 h. A release, a drop, or a release by force while the lease
    /// lives, leaves none. One that has begun cannot be ended: choose it no longer than what it is
    /// for.
    ///
    /// For effects that no store can check, such as a call to a third party: time for what a paused
    /// holder had under way to arrive. The holder itself gains nothing, it has lost its lease.
    pub const fn lock_delay(mut self, delay: Duration) -> Self {
        self.settings.lock_delay = delay;
        self
    }

    /// How many may wait at most, at least 1: one more fails at once with
    /// [`ErrorKind::QueueFull`]. Defaults to what the manager was
    /// [built](super::LockManagerBuilder::max_waiters) with, without bound if that says nothing.
    pub const fn max_waiters(mut self, max_waiters: u32) -> Self {
        self.settings.max_waiters = Some(max_waiters);
        self
    }

    /// The identity of the acquisition, drawn earlier; otherwise a fresh one is drawn.
    ///
    /// An acquisition that is repeated with the same holder gets the same grant, and the first of
    /// its guards that is released ends it for all. See [`owner`](Acquire::owner) for guards that
    /// each give back their own hold.
    pub const fn holder(mut self, holder: Holder) -> Self {
        self.identity = Identity::Known(holder);
        self
    }

    /// Acquires as this [`Owner`]: at once, with the same token, if it holds the resource already.
    ///
    /// After its lease was lost an owner gets [`ErrorKind::Released`].
    pub const fn owner(mut self, owner: &Owner) -> Self {
        self.identity = Identity::Owner(owner.id());
        self
    }

    /// Takes one look and does not wait.
    ///
    /// # Errors
    /// As [`Acquire`], without `WaitTimeout`.
    ///
    /// # Cancel safety
    /// As [`Acquire`].
    pub async fn try_now(self) -> Result<Attempt<LeaseGuard>, Error> {
        self.wait(Duration::ZERO).guarded().await
    }

    /// Acquires without guard and watchdog. Waits as told; `Held` when the wait is over.
    ///
    /// # Errors
    /// As [`Acquire`], without `WaitTimeout`.
    ///
    /// # Cancel safety
    /// As [`Acquire`]. Once it has returned, the lease is the caller's to release. That of an
    /// [`Owner`] ends for all of its handles then.
    pub async fn detached(self) -> Result<Attempt<DetachedLease>, Error> {
        let (locks, ttl) = (self.locks, self.settings.ttl);
        let attempt = self.renew(false).granted().await?;
        Ok(attempt.map(|granted| {
            let Granted {
                mut pending,
                attempt,
                grant,
            } = granted;
            pending.disarm();
            let issuer = locks.issuer().clone();
            DetachedLease {
                sequencer: Sequencer::new(issuer, attempt.resource, grant.token, attempt.holder),
                ttl,
                remaining: grant.lease.deadline().since(locks.inner.clock.now()),
            }
        }))
    }

    /// As these settings say instead.
    pub(super) fn with(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    async fn guarded(self) -> Result<Attempt<LeaseGuard>, Error> {
        let locks = self.locks;
        let shared = matches!(self.identity, Identity::Owner(_));
        let terms = self.settings.terms(shared);
        let attempt = self.granted().await?;
        Ok(attempt.map(|mut granted| {
            let Granted { attempt, grant, .. } = &granted;
            let guard = LeaseGuard::new(Arc::clone(&locks.inner), attempt, *grant, terms);
            granted.pending.disarm();
            guard
        }))
    }

    /// Acquires as told, counted and traced.
    async fn granted(self) -> Result<Attempt<Granted>, Error> {
        let resource = self.resource.clone()?;
        self.check().map_err(|error| error.on(&resource))?;
        let inner = &*self.locks.inner;
        let wait = self.settings.until(&*inner.clock);
        let span = observed::span(&resource, inner.backend.kind());
        let observed = Observed::begin(inner, wait != Wait::Never, span.clone());
        let acquired = async {
            let answer = match self.retry {
                None => self.asked(&resource, wait).await,
                Some(policy) => self.polled(&resource, policy).await,
            };
            observed.end(&answer);
            answer
        };
        acquired.instrument(span).await
    }

    /// Asks the lock service until it has answered something that is still true.
    pub(super) async fn asked(
        &self,
        resource: &ResourceName,
        wait: Wait,
    ) -> Result<Attempt<Granted>, Error> {
        let inner = &self.locks.inner;
        let mut late_grants = 0;
        loop {
            let request = self.request(resource, wait);
            let clean_up = CleanUp::Cancel {
                attempt: request.attempt.clone(),
                ttl: self.settings.ttl,
            };
            let mut pending = OnDrop::new(Arc::clone(inner), clean_up);
            match self.locks.acquire_unless_shut_down(&request).await {
                Ok(Attempt::Granted(grant)) if grant.lease.deadline() > inner.clock.now() => {
                    return Ok(Attempt::Granted(Granted {
                        pending,
                        attempt: request.attempt,
                        grant,
                    }));
                }
                // The grant came after its own end: given back by dropping `pending`.
                Ok(Attempt::Granted(_)) => late_grants += 1,
                // The same, as a later answer of the service tells it: nobody but us knows this
                // holder, and we have released nothing.
                Err(error)
                    if error.kind() == ErrorKind::Released
                        && matches!(self.identity, Identity::Fresh) =>
                {
                    late_grants += 1;
                }
                Ok(Attempt::Held { retry_after }) => {
                    pending.disarm();
                    return Ok(Attempt::Held { retry_after });
                }
                Err(error) => {
                    if error.outcome() == Outcome::NotApplied {
                        pending.disarm();
                    }
                    return Err(error);
                }
            }
            let over = match wait {
                Wait::Never => true,
                Wait::Until(moment) => moment <= inner.clock.now(),
                Wait::Forever => false,
            };
            if over || late_grants == LATE_GRANTS_MAX {
                let kind = inner.backend.kind();
                return Err(Error::new(ErrorKind::Unavailable, Operation::Acquire, kind)
                    .on(resource)
                    .because("the grant arrived after the lease had ended; ask for a longer ttl"));
            }
        }
    }

    fn check(&self) -> Result<(), Error> {
        if matches!(self.identity, Identity::Owner(_)) {
            self.locks.require(Extension::Holds, "owners")?;
        }
        self.settings.check(self.locks)
    }

    /// A request of a fresh attempt.
    fn request(&self, resource: &ResourceName, wait: Wait) -> AcquireRequest {
        let holder = match self.identity {
            Identity::Fresh => Holder::random(),
            Identity::Known(holder) | Identity::Owner(holder) => holder,
        };
        let attempt = AttemptRef::new(resource.clone(), holder);
        let mut request = self.settings.request(attempt, wait);
        request.floor = self.floor;
        request.upkeep = match self.identity {
            Identity::Fresh if self.settings.renew => Upkeep::Watchdog,
            // Another process may be told of the same lease.
            Identity::Fresh | Identity::Known(_) | Identity::Owner(_) => Upkeep::None,
        };
        request
    }
}

impl LockManager {
    /// Acquires, or gives up when the manager is shut down: then nobody else would clean up.
    async fn acquire_unless_shut_down(
        &self,
        request: &AcquireRequest,
    ) -> Result<Attempt<Grant>, Error> {
        let backend = &self.inner.backend;
        tokio::select! {
            biased;
            () = self.inner.watchdog.closed() => {}
            answer = backend.acquire(request) => return answer,
        }
        let cancelled = backend.cancel(&request.attempt).await;
        let shut_down = Error::new(ErrorKind::ShutDown, Operation::Acquire, backend.kind())
            .on(&request.attempt.resource);
        Err(if cancelled.is_ok() {
            shut_down
        } else {
            shut_down.outcome_unknown()
        })
    }
}

impl<'a> IntoFuture for Acquire<'a> {
    type Output = Result<LeaseGuard, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let locks = self.locks;
            let resource = self.resource.clone();
            match self.guarded().await? {
                Attempt::Granted(guard) => Ok(guard),
                Attempt::Held { retry_after } => {
                    let kind = locks.backend_kind();
                    let timeout = Error::new(ErrorKind::WaitTimeout, Operation::Acquire, kind)
                        .with_retry_after(retry_after);
                    Err(match resource {
                        Ok(resource) => timeout.on(&resource),
                        Err(_) => timeout,
                    })
                }
            }
        })
    }
}
