use crate::{
    AcquireRequest, AttemptRef, Error, ErrorKind, LockBackend, Operation, RenewRequest,
    ResourceName, Sequencer,
};

/// A copy of a request, to be sent when its caller may be long gone.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Acquire(AcquireRequest),
    Renew(Vec<RenewRequest>),
    Release(Sequencer),
    Cancel(AttemptRef),
    Inspect(ResourceName),
}

impl Request {
    pub(super) const fn operation(&self) -> Operation {
        match self {
            Self::Acquire(_) => Operation::Acquire,
            Self::Renew(_) => Operation::Renew,
            Self::Release(_) => Operation::Release,
            Self::Cancel(_) => Operation::Cancel,
            Self::Inspect(_) => Operation::Inspect,
        }
    }

    /// Sends it. Nobody waits for the reply, so it is thrown away.
    pub(super) async fn send(self, service: &dyn LockBackend) {
        match self {
            Self::Acquire(request) => drop(service.acquire(&request).await),
            Self::Renew(leases) => drop(service.renew(&leases).await),
            Self::Release(lease) => drop(service.release(&lease).await),
            Self::Cancel(attempt) => drop(service.cancel(&attempt).await),
            Self::Inspect(resource) => drop(service.inspect(&resource).await),
        }
    }
}

/// What a client sees when no answer comes: it may have happened.
pub(super) fn no_answer(
    operation: Operation,
    kind: &'static str,
    resource: &ResourceName,
    why: &str,
) -> Error {
    Error::new(ErrorKind::Unavailable, operation, kind)
        .on(resource)
        .because(why)
        .outcome_unknown()
}
