use lock_core::{
    Error, ErrorKind, FencingToken, Operation, ResourceName, Sequencer,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, LockService, RenewRequest, Request, Requests as _,
    },
};

/// A copy of a request, to be sent when its caller may already be gone.
#[derive(Clone, Debug)]
pub(super) enum Sent {
    /// One request of an attempt.
    Acquire(AcquireRequest, Request),
    Renew(Vec<RenewRequest>),
    /// A release, with a tombstone if the flag is true.
    Release(Sequencer, bool),
    Cancel(AttemptRef),
    Inspect(ResourceName),
    ReleaseHold(Sequencer, AttemptId),
    ForceRelease(ResourceName, FencingToken),
    List,
    AcquireTogether(Vec<AcquireRequest>),
}

impl Sent {
    pub(super) const fn operation(&self) -> Operation {
        match self {
            Self::Acquire(..) | Self::AcquireTogether(_) => Operation::Acquire,
            Self::Renew(_) => Operation::Renew,
            Self::Release(..) | Self::ReleaseHold(..) => Operation::Release,
            Self::Cancel(_) => Operation::Cancel,
            Self::Inspect(_) => Operation::Inspect,
            Self::ForceRelease(..) => Operation::ForceRelease,
            Self::List => Operation::List,
        }
    }

    /// Sends the request. The reply is dropped, because the caller is gone.
    pub(super) async fn send(self, service: &LockService) {
        match self {
            Self::Acquire(attempt, request) => {
                drop(service.requests(&attempt).send(request).await);
            }
            Self::Renew(leases) => drop(service.renew(&leases).await),
            Self::Release(lease, tombstone) => drop(service.release(&lease, tombstone).await),
            Self::Cancel(attempt) => drop(service.cancel(&attempt).await),
            Self::Inspect(resource) => drop(service.inspect(&resource).await),
            Self::ReleaseHold(lease, attempt) => drop(service.release_hold(&lease, attempt).await),
            Self::ForceRelease(resource, token) => {
                drop(service.force_release(&resource, token).await);
            }
            Self::List => drop(service.list().await),
            Self::AcquireTogether(requests) => drop(service.acquire_together(&requests).await),
        }
    }
}

/// The error that a client sees when no answer comes: the request may have taken effect.
pub(super) fn no_answer(why: &str) -> Error {
    Error::unknown(ErrorKind::Unavailable).because(why)
}
