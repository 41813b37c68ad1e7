use std::time::Duration;

use crate::{InvalidMetadata, Metadata, RetryPolicy, Ttl};

/// The settings of the leases that something acquires. [`lease_settings!`](crate::lease_settings)
/// documents them.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "its fields have the names of the setters")]
#[non_exhaustive]
pub struct LeaseSettings {
    pub ttl: Ttl,
    pub wait: Patience,
    pub retry: Option<RetryPolicy>,
    pub renew: bool,
    pub max_hold: Option<Duration>,
    pub metadata: Option<Result<Metadata, InvalidMetadata>>,
    pub max_waiters: Option<u32>,
}

/// How long an acquisition waits for a resource that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Patience {
    /// Not at all. The one look has the time to send its request again if the connection was gone.
    Look,
    /// For this time, which may be zero.
    AtMost(Duration),
    /// Without bound.
    Unbounded,
}

/// A type that acquires leases: an acquisition that is being prepared, a candidate, a job.
pub trait AcquiresLeases {
    /// The settings of its leases.
    fn lease_settings(&mut self) -> &mut LeaseSettings;
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self {
            ttl: Ttl::default(),
            wait: Patience::Unbounded,
            retry: None,
            renew: true,
            max_hold: None,
            metadata: None,
            max_waiters: None,
        }
    }
}

/// The setters of everything that acquires leases, written once. The type implements
/// [`AcquiresLeases`](crate::backend::AcquiresLeases).
#[doc(hidden)]
#[macro_export]
macro_rules! lease_settings {
    () => {
        /// The ttl of each lease. Defaults to the setting of the manager's
        /// [builder](lock_core::LockManagerBuilder::ttl), or to 10 s if that is not set. Setting it
        /// does not switch off renewal.
        pub fn ttl(mut self, ttl: $crate::Ttl) -> Self {
            self.lease_settings().ttl = ttl;
            self
        }

        /// Looks again and again, with the pauses of this policy, instead of queueing.
        ///
        /// For callers that do not want to queue. Queued waiters go first, so under contention such
        /// a caller may never get the lease. The wait ends like any wait, with
        /// [`WaitTimeout`](lock_core::ErrorKind::WaitTimeout), when the policy's limit is reached
        /// or the wait is over, whichever is sooner. A pause that would end later is cut short for
        /// a last look. Pauses follow the policy only, not the expiry of the present lease. Most
        /// leases are renewed before they expire, and all callers that waited for the expiry would
        /// come back at the same time. A lock service that does not answer is asked again, for up
        /// to 10 s. Other errors are not retried.
        pub fn retry(mut self, policy: $crate::RetryPolicy) -> Self {
            self.lease_settings().retry = Some(policy);
            self
        }

        /// Whether the watchdog renews the lease. Defaults to true. No other setting switches
        /// renewal off.
        pub fn renew(mut self, renew: bool) -> Self {
            self.lease_settings().renew = renew;
            self
        }

        /// The time for which the watchdog keeps the lease up. Defaults to the setting of the
        /// manager's [builder](lock_core::LockManagerBuilder::max_hold), or to no bound if that is
        /// not set.
        ///
        /// Protects against a section that hangs while its process lives. Without this bound the
        /// lease of such a section would be renewed for ever. Once the lease has been held for this
        /// long, no more renewals are sent. The lease then runs out by itself, at the latest one
        /// ttl later, and is lost with [`LostReason::MaxHold`](lock_core::LostReason::MaxHold);
        /// until then it is held as usual. The lease always lasts for at least its ttl, however
        /// short this setting is. But a handle that joins the lease of its
        /// [`Owner`](lock_core::Owner) gets only the time that is left.
        pub fn max_hold(mut self, max_hold: ::std::time::Duration) -> Self {
            self.lease_settings().max_hold = Some(max_hold);
            self
        }

        /// A note for anybody who [inspects](lock_core::LockManager::inspect) or
        /// [lists](lock_core::LockManager::list), such as a host name. It is not a secret, and
        /// programs must not decide by it.
        ///
        /// A note that is not [valid](lock_core::Metadata) causes an error before anything is sent.
        pub fn metadata<M>(mut self, metadata: M) -> Self
        where
            M: TryInto<$crate::Metadata>,
            M::Error: Into<$crate::InvalidMetadata>,
        {
            let metadata = metadata.try_into().map_err(Into::into);
            self.lease_settings().metadata = Some(metadata);
            self
        }

        /// The greatest number of waiters, at least 1. If as many wait already, the acquisition
        /// fails at once with [`QueueFull`](lock_core::ErrorKind::QueueFull). Defaults to the
        /// setting of the manager's [builder](lock_core::LockManagerBuilder::max_waiters), or to no
        /// bound if that is not set. `acquire_together` does not queue, so the setting changes
        /// nothing there.
        pub fn max_waiters(mut self, max_waiters: u32) -> Self {
            self.lease_settings().max_waiters = Some(max_waiters);
            self
        }
    };
}
