use std::fmt;

use crate::{Error, ErrorKind, FencingToken, Operation, ResourceName, error::OURSELVES};

/// The lease has ended without a release by its guard. The store refuses later writes once a newer
/// grant has claimed the resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease on {:?} with token {token} was lost: {}", .resource.as_str(), .reason)]
pub struct Lost {
    resource: ResourceName,
    token: FencingToken,
    reason: LostReason,
}

/// Why a lease was lost.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let memory = lock_core::memory::MemoryBackend::default();
/// # let locks = lock_core::LockManager::builder().build(memory)?;
/// use lock_core::{LostReason, Ttl};
///
/// let guard = locks.acquire("account:42").await?;
/// locks.force_release("account:42").await?; // an operator
/// guard.renew(Ttl::secs(10)).await.unwrap_err(); // the watchdog would have found out, too
/// assert_eq!(guard.lost().await.reason(), LostReason::NotHolder);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LostReason {
    /// The deadline passed before a renewal succeeded, because of a pause, an unreachable lock
    /// service, or a guard that was left in an error (`fenced_store::NotCommitted`).
    Expired,
    /// The lock service says that another holder has the resource, or that it is free: the lease
    /// was released by force, or the service has lost its state.
    NotHolder,
    /// The lease was held for its whole [`Acquire::max_hold`](crate::Acquire::max_hold), so the
    /// watchdog stopped renewing it.
    MaxHold,
    /// The manager was shut down and stopped renewing; or its watchdog has ended with the runtime
    /// on which the manager was made, or by a panic.
    ShutDown,
}

impl Lost {
    pub(super) const fn new(
        resource: ResourceName,
        token: FencingToken,
        reason: LostReason,
    ) -> Self {
        Self {
            resource,
            token,
            reason,
        }
    }

    /// The resource whose lease was lost.
    #[must_use]
    pub const fn resource(&self) -> &ResourceName {
        &self.resource
    }

    /// The token of the lease that was lost.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// Why the lease was lost.
    #[must_use]
    pub const fn reason(&self) -> LostReason {
        self.reason
    }
}

impl LostReason {
    /// The reason as a metric label: one word.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::NotHolder => "not_holder",
            Self::MaxHold => "max_hold",
            Self::ShutDown => "shut_down",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Expired => "it was not renewed before its deadline",
            Self::NotHolder => "the lock service has another holder or none",
            Self::MaxHold => "it was held for its max_hold",
            Self::ShutDown => "the lock manager was shut down, or its runtime has ended",
        }
    }
}

impl fmt::Display for LostReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

/// Lets a function that returns [`Error`] return the result of `guard.lost()`.
impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        let resource = lost.resource.clone();
        Self::not_applied(ErrorKind::Lost)
            .during(Operation::Renew, OURSELVES)
            .on(&resource)
            .caused_by(lost)
    }
}
