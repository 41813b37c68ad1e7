use super::AttemptId;
use crate::{
    FencingToken, Holder, Issuer, Metadata, Moment, ResourceName, Runtime, Sequencer, Ttl,
};

/// A request to acquire a lease. Its identity exists before the first byte is sent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AcquireRequest {
    /// The resource, the holder, and which attempt this is.
    pub attempt: AttemptRef,
    /// The length of the lease.
    pub ttl: Ttl,
    /// How long to wait.
    pub wait: Wait,
    /// The smallest useful token. It is needed when the store has seen greater tokens than the lock
    /// service remembers.
    pub floor: Option<FencingToken>,
    /// Whether the lease may begin short and be confirmed by its first renewal.
    pub upkeep: Upkeep,
    /// A note for anybody who inspects the resource.
    pub metadata: Option<Metadata>,
    /// The queue length at which this request is refused, at least 1. `None`: without bound.
    pub max_waiters: Option<u32>,
    /// The issuer under which the grant is to be claimed in the same step, if the lock service is
    /// the database that has the marks. Other lock services ignore it, and the holder claims.
    pub claim: Option<Issuer>,
}

impl AcquireRequest {
    /// A request without waiting, floor, upkeep or any other option.
    #[must_use]
    pub const fn new(attempt: AttemptRef, ttl: Ttl) -> Self {
        Self {
            attempt,
            ttl,
            wait: Wait::Never,
            floor: None,
            upkeep: Upkeep::None,
            metadata: None,
            max_waiters: None,
            claim: None,
        }
    }
}

/// One attempt of one acquisition. A holder may try again; a cancel cancels one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "lock services take it apart")]
pub struct AttemptRef {
    /// The resource to be held.
    pub resource: ResourceName,
    /// The identity of the acquisition.
    pub holder: Holder,
    /// Which attempt of that acquisition.
    pub id: AttemptId,
}

impl AttemptRef {
    /// A fresh attempt of an acquisition. The runtime draws its id.
    #[must_use]
    pub fn new(runtime: &dyn Runtime, resource: ResourceName, holder: Holder) -> Self {
        Self {
            resource,
            holder,
            id: AttemptId::draw(runtime),
        }
    }
}

/// How long an acquire waits for a resource that another holder has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "every lock service has to tell them apart"
)]
pub enum Wait {
    /// Not at all: one look only.
    Never,
    /// Until a moment of the backend's clock.
    Until(Moment),
    /// Without bound.
    Forever,
}

impl Wait {
    /// The end of the wait, for a caller that looks again and again. The wait begins `now`.
    #[must_use]
    pub const fn end(self, now: Moment) -> Moment {
        match self {
            Self::Never => now,
            Self::Until(moment) => moment,
            Self::Forever => Moment::NEVER,
        }
    }

    /// The moment by which an answer must come. A single look, which does not wait, has no such
    /// bound.
    #[must_use]
    pub const fn limit(self) -> Moment {
        match self {
            Self::Until(moment) => moment,
            Self::Never | Self::Forever => Moment::NEVER,
        }
    }

    /// Whether there is no more waiting.
    #[must_use]
    pub fn is_over(self, now: Moment) -> bool {
        now >= self.end(now)
    }
}

/// Whether a lease is going to be renewed, and by which task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "every lock service has to tell them apart"
)]
pub enum Upkeep {
    /// A watchdog of this process renews it, the first time by
    /// [`Lease::renew_by`](crate::Lease::renew_by). No other process asks for the same acquisition,
    /// and it is not held several times. After a wait the lease may begin with a part of its ttl.
    Watchdog,
    /// No process is certain to renew it, or another process may get the same lease in an answer.
    /// The lease must have its full length at once.
    None,
}

/// A request to renew one lease.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "lock services take it apart")]
pub struct RenewRequest {
    /// The lease.
    pub sequencer: Sequencer,
    /// Its new length, counted from now.
    pub ttl: Ttl,
}

impl RenewRequest {
    /// A request to renew this lease to this length.
    #[must_use]
    pub const fn new(sequencer: Sequencer, ttl: Ttl) -> Self {
        Self { sequencer, ttl }
    }
}
