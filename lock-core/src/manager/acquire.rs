use std::{future::IntoFuture, time::Duration};

use tracing::Instrument;

use super::{
    LockManager,
    granted::Granted,
    guard::LeaseGuard,
    observed::{self, Observed},
    owner::Owner,
    settings::Identity,
};
use crate::{
    Attempt, BoxFuture, Error, ErrorKind, Extension, FencingToken, Holder, InvalidName, Operation,
    ResourceName, Wait,
    acquisition::Sharing,
    backend::{AcquiresLeases, LeaseSettings, Patience},
};

/// An acquisition that is being prepared: `.await` it for a [`LeaseGuard`].
///
/// | while another holder has the resource | |
/// |---|---|
/// | `.await` | waits in the queue, without bound |
/// | [`.wait(time)`](Acquire::wait)`.await` | waits in the queue, for at most this time |
/// | [`.retry(policy)`](Acquire::retry)`.await` | looks again and again, without queueing |
/// | [`.try_acquire()`](Acquire::try_acquire)`.await` | does not wait |
///
/// # Errors
/// Awaiting it fails with [`ErrorKind::WaitTimeout`] when the wait is over,
/// [`ErrorKind::QueueFull`] when too many wait, [`ErrorKind::Released`] when its holder or owner
/// has ended, [`ErrorKind::InvalidInput`] for a name or a setting that is not allowed,
/// [`ErrorKind::Unsupported`] for a setting that the lock service does not support,
/// [`ErrorKind::Unavailable`] when the service does not answer, [`ErrorKind::TooFewReplicas`] when
/// too few replicas have the grant in time, [`ErrorKind::ConfigMismatch`] when other clients use
/// the service with other settings, [`ErrorKind::Refused`] when the service answers with an error
/// of its own, such as a missing permission, [`ErrorKind::FloorImplausible`],
/// [`ErrorKind::CounterBroken`] or [`ErrorKind::TokensExhausted`] if the service cannot draw a
/// token, and [`ErrorKind::ShutDown`] when the manager's watchdog has ended.
/// [`Error::is_retryable`] says which of these are worth another try.
///
/// # Cancel safety
/// Dropping the future at any await leaves nothing behind: you lose your place in the queue, and
/// the watchdog gives back a lease that may have been granted in the meantime.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let memory = lock_core::memory::MemoryBackend::default();
/// # let locks = lock_core::LockManager::builder().build(memory)?;
/// use std::time::Duration;
///
/// use lock_core::{Attempt, ErrorKind, Ttl};
///
/// let held = locks.acquire("account:42").ttl(Ttl::secs(30)).await?;
/// assert!(matches!(locks.try_acquire("account:42").await?, Attempt::Held { .. }));
///
/// let wait = Duration::from_millis(20);
/// let error = locks.acquire("account:42").wait(wait).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::WaitTimeout);
/// # drop(held);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "an acquisition does nothing until it is awaited"]
pub struct Acquire<W = Single> {
    pub(super) locks: LockManager,
    pub(super) what: W,
    pub(super) settings: LeaseSettings,
}

/// One resource, as [`LockManager::acquire`] acquires it.
#[derive(Clone, Debug)]
pub struct Single {
    resource: Result<ResourceName, InvalidName>,
    pub(super) identity: Identity,
    pub(super) floor: Option<FencingToken>,
    pub(super) claiming: bool,
}

/// The settings of every acquisition, of one resource or of several.
impl<W> Acquire<W> {
    pub(super) fn of(locks: &LockManager, what: W) -> Self {
        Self {
            settings: locks.inner.defaults.clone(),
            locks: locks.clone(),
            what,
        }
    }

    crate::lease_settings!();

    /// The longest wait for a resource that is held, or for a lock service that does not answer.
    /// Several resources share one wait. Defaults to no bound.
    ///
    /// After 10 s without an answer the wait ends sooner, with
    /// [`Unavailable`](crate::ErrorKind::Unavailable). It ends up to 0.6 s later if the last answer
    /// is still under way. So a wait of zero has less time than
    /// [`try_acquire`](Acquire::try_acquire), and sends no request again.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.settings.wait = Patience::AtMost(wait);
        self
    }
}

impl<W> AcquiresLeases for Acquire<W> {
    fn lease_settings(&mut self) -> &mut LeaseSettings {
        &mut self.settings
    }
}

impl Acquire {
    pub(super) fn new(locks: &LockManager, resource: Result<ResourceName, InvalidName>) -> Self {
        let what = Single {
            resource,
            identity: Identity::Fresh,
            floor: None,
            claiming: false,
        };
        Self::of(locks, what)
    }

    /// The smallest useful token.
    ///
    /// It is needed when the store has seen greater tokens than the lock service remembers.
    pub const fn at_least(mut self, floor: FencingToken) -> Self {
        self.what.floor = Some(floor);
        self
    }

    /// The identity of the acquisition, drawn earlier. By default a fresh identity is drawn.
    ///
    /// An acquisition that is repeated with the same holder gets the same grant.
    /// [Releasing](LeaseGuard::release) any of its guards ends the acquisition for all of them,
    /// permanently. A guard that is dropped ends the lease only if no other attempt got it, and
    /// then the holder may acquire again. Use [`owner`](Acquire::owner) for guards that each give
    /// back their own hold.
    pub const fn holder(mut self, holder: Holder) -> Self {
        self.what.identity = Identity::Known(holder);
        self
    }

    /// Acquires as this [`Owner`]. If the owner already holds the resource, this returns at once,
    /// with the same token.
    ///
    /// After its lease was lost, an owner gets [`ErrorKind::Released`].
    pub const fn owner(mut self, owner: &Owner) -> Self {
        self.what.identity = Identity::Owner(owner.id());
        self
    }

    /// Takes one look and does not wait.
    ///
    /// # Errors
    /// As [`Acquire`], without `WaitTimeout`.
    ///
    /// # Cancel safety
    /// As [`Acquire`].
    pub async fn try_acquire(self) -> Result<Attempt<LeaseGuard>, Error> {
        self.guarded(Some(Wait::Never)).await
    }

    /// Whether others may have the lease, too.
    pub(super) const fn sharing(&self) -> Sharing {
        match self.what.identity {
            Identity::Fresh => Sharing::Alone,
            Identity::Known(_) => Sharing::Repeated,
            Identity::Owner(_) => Sharing::Holds,
        }
    }

    async fn guarded(&self, wait: Option<Wait>) -> Result<Attempt<LeaseGuard>, Error> {
        let guard = |Granted { pending, grant }| LeaseGuard::new(pending, grant, &self.settings);
        Ok(self.granted(wait).await?.map(guard))
    }

    /// Acquires, counted and traced. Waits as configured unless another wait is given.
    pub(super) async fn granted(&self, wait: Option<Wait>) -> Result<Attempt<Granted>, Error> {
        let resource = self.what.resource.as_ref().map_err(InvalidName::clone)?;
        self.check().map_err(|error| error.on(resource))?;
        let inner = &*self.locks.inner;
        let wait = wait.unwrap_or_else(|| self.settings.until(&*inner.runtime));
        let span = observed::span(resource, inner.backend.kind());
        let observed = Observed::begin(inner, wait, span.clone());
        let acquired = async {
            let answer = self.asked(resource, wait).await;
            let answer = answer.map_err(|error| self.locks.failed(error).on(resource));
            observed.end(&answer, observed::granted);
            answer
        };
        acquired.instrument(span).await
    }

    fn check(&self) -> Result<(), Error> {
        if matches!(self.what.identity, Identity::Owner(_)) {
            self.locks.require(Extension::Holds, "owners")?;
        }
        self.settings.check(&self.locks)
    }
}

impl IntoFuture for Acquire {
    type Output = Result<LeaseGuard, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.guarded(None).await? {
                Attempt::Granted(guard) => Ok(guard),
                Attempt::Held { retry_after } => {
                    let timeout = self.locks.timeout(retry_after);
                    Err(match &self.what.resource {
                        Ok(resource) => timeout.on(resource),
                        Err(_) => timeout,
                    })
                }
            }
        })
    }
}

impl LockManager {
    /// The error when a wait for others is over.
    pub(super) fn timeout(&self, retry_after: Duration) -> Error {
        self.failed(Error::not_applied(ErrorKind::WaitTimeout))
            .with_retry_after(retry_after)
    }

    /// An error of an acquire, whether the lock service made it or the manager did.
    pub(super) fn failed(&self, error: Error) -> Error {
        error.during(Operation::Acquire, self.backend_kind())
    }
}
