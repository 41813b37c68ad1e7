use std::{future::IntoFuture, sync::Arc, time::Duration};

use tracing::Instrument;

use super::{
    LockManager,
    cleanup::{CleanUp, OnDrop},
    guard::{LeaseGuard, Terms},
    observed::{self, Observed},
};
use crate::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Error, ErrorKind, FencingToken, Grant, Holder,
    InvalidName, Operation, Outcome, ResourceName, RetryPolicy, Sequencer, Ttl, Upkeep, Wait,
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
/// [`ErrorKind::InvalidInput`] for a name that is not allowed, [`ErrorKind::Unavailable`] when the
/// lock service does not answer, [`ErrorKind::FloorImplausible`], [`ErrorKind::CounterBroken`] or
/// [`ErrorKind::TokensExhausted`] for its token, and [`ErrorKind::ShutDown`].
///
/// # Cancel safety
/// Dropping the future at any await leaves nothing behind: you lose your place in line, and a lease
/// that may have been granted meanwhile is given back by the watchdog.
#[derive(Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct Acquire<'a> {
    pub(super) locks: &'a LockManager,
    resource: Result<ResourceName, InvalidName>,
    holder: Option<Holder>,
    ttl: Ttl,
    pub(super) wait: Option<Duration>,
    retry: Option<RetryPolicy>,
    floor: Option<FencingToken>,
    renew: bool,
    max_hold: Option<Duration>,
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
        let (ttl, wait, floor) = (Ttl::default(), None, None);
        Self {
            locks,
            resource,
            holder: None,
            ttl,
            wait,
            retry: None,
            floor,
            renew: true,
            max_hold: locks.inner.max_hold,
        }
    }

    /// The length of the lease. Defaults to 10 s. It is renewed all the same.
    pub const fn ttl(mut self, ttl: Ttl) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long to wait for a resource that is held. Defaults to: without bound.
    ///
    /// A lock service that does not answer is not waited for without bound, see its documentation.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Looks again and again, with pauses by this policy, instead of waiting in line.
    ///
    /// For those who do not want to queue. It takes no place in line: whoever waits is served
    /// before, and with others in line it may never have its turn. It ends like any wait, with
    /// [`ErrorKind::WaitTimeout`], when the policy's limit is reached or the
    /// [`wait`](Acquire::wait) is over, whichever is sooner. A pause that would end later is cut
    /// short for a last look. The pauses are the policy's alone: when the present lease would end
    /// is not looked at, because most leases are renewed before, and because all who do would come
    /// back at the same time. What fails otherwise is not tried again.
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
        self.renew = renew;
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
        self.max_hold = Some(max_hold);
        self
    }

    /// The identity of the acquisition, drawn earlier; otherwise a fresh one is drawn.
    ///
    /// An acquisition that is repeated with the same holder gets the same grant.
    pub const fn holder(mut self, holder: Holder) -> Self {
        self.holder = Some(holder);
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
    /// As [`Acquire`]. Once it has returned, the lease is the caller's to release.
    pub async fn detached(self) -> Result<Attempt<DetachedLease>, Error> {
        let (locks, ttl) = (self.locks, self.ttl);
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

    async fn guarded(self) -> Result<Attempt<LeaseGuard>, Error> {
        let locks = self.locks;
        let terms = Terms {
            ttl: self.ttl,
            renew: self.renew,
            shared: false,
            max_hold: self.max_hold,
        };
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
        let inner = &*self.locks.inner;
        let wait = match self.wait {
            None => Wait::Forever,
            Some(Duration::ZERO) => Wait::Never,
            Some(wait) => Wait::Until(inner.clock.now() + wait),
        };
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
                ttl: self.ttl,
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

    /// A request of a fresh attempt.
    fn request(&self, resource: &ResourceName, wait: Wait) -> AcquireRequest {
        let holder = self.holder.unwrap_or_else(Holder::random);
        let attempt = AttemptRef::new(resource.clone(), holder);
        let mut request = AcquireRequest::new(attempt, self.ttl);
        request.wait = wait;
        request.floor = self.floor;
        // With a holder that others may know, another process may be told of the same lease.
        request.upkeep = if self.renew && self.holder.is_none() {
            Upkeep::Watchdog
        } else {
            Upkeep::None
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
                        .retry_after(retry_after);
                    Err(match resource {
                        Ok(resource) => timeout.on(&resource),
                        Err(_) => timeout,
                    })
                }
            }
        })
    }
}
