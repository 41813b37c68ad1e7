use std::sync::Arc;

use lock_core::{
    Capabilities, Error, ErrorKind, FencingToken, Holder, Inspection, Issuer, Operation, Outcome,
    Released, ResourceName, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, LockBackend, LockService, RenewRequest, Renewed, Reply,
        Request, Requests, Runtime, TokioRuntime,
    },
    memory::MemoryBackend,
};

/// A lock service with the required methods only.
#[derive(Debug)]
pub(crate) struct Bare(pub(crate) MemoryBackend);

impl LockBackend for Bare {
    fn kind(&self) -> &'static str {
        "bare"
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities().extended(&[])
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        self.0.runtime()
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        self.0.requests(request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.0.renew(leases).await
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        self.0.release(lease, tombstone).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.0.cancel(attempt).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        self.0.inspect(resource).await
    }
}

/// A lock service that never answers, and whose error has no details.
#[derive(Debug)]
struct Mute;

fn no_answer<T>() -> Result<T, Error> {
    Err(Error::unknown(ErrorKind::Unavailable))
}

impl LockBackend for Mute {
    fn kind(&self) -> &'static str {
        "mute"
    }

    fn capabilities(&self) -> Capabilities {
        MemoryBackend::default().capabilities().extended(&[])
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(TokioRuntime)
    }

    fn requests<'a>(&'a self, _: &'a AcquireRequest) -> impl Requests + 'a {
        Self
    }

    async fn renew(&self, _: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        vec![no_answer()]
    }

    async fn release(&self, _: &Sequencer, _: bool) -> Result<Released, Error> {
        no_answer()
    }

    async fn cancel(&self, _: &AttemptRef) -> Result<(), Error> {
        no_answer()
    }

    async fn inspect(&self, _: &ResourceName) -> Result<Inspection, Error> {
        no_answer()
    }
}

impl Requests for Mute {
    async fn send(&self, _: Request) -> Result<Reply, Error> {
        no_answer()
    }
}

/// Catches: errors of a user's backend that do not name operation, kind and resource, and a batch
/// with fewer answers than requests.
#[tokio::test]
async fn a_lock_service_names_operation_kind_and_resource_in_errors() {
    let service = LockService::from(Mute);
    let resource = ResourceName::new("r").unwrap();
    let attempt = AttemptRef::new(&TokioRuntime, resource.clone(), Holder::random());
    let (token, id) = (FencingToken::MIN, attempt.id);
    let issuer = Issuer::new("mute").unwrap();
    let lease = Sequencer::new(issuer, resource.clone(), token, attempt.holder);
    let renewal = RenewRequest::new(lease.clone(), Ttl::secs(1));
    let request = AcquireRequest::new(attempt.clone(), Ttl::secs(1));
    let together = std::slice::from_ref(&request);
    // One request more than the service answers.
    let renewed = service.renew(&[renewal.clone(), renewal]).await;
    for renewed in renewed {
        let error = renewed.unwrap_err();
        assert_eq!(
            (error.operation(), error.outcome()),
            (Operation::Renew, Outcome::Unknown)
        );
        assert_eq!(
            (error.backend(), error.resource()),
            ("mute", Some(&resource))
        );
    }
    let list = service.list().await.unwrap_err();
    assert_eq!(
        (list.operation(), list.backend()),
        (Operation::List, "mute")
    );
    for (error, operation) in [
        (
            service.acquire(&request).await.map(drop),
            Operation::Acquire,
        ),
        (
            service.acquire_together(together).await.map(drop),
            Operation::Acquire,
        ),
        (
            service.release(&lease, true).await.map(drop),
            Operation::Release,
        ),
        (
            service.release_hold(&lease, id).await.map(drop),
            Operation::Release,
        ),
        (service.cancel(&attempt).await, Operation::Cancel),
        (
            service.inspect(&resource).await.map(drop),
            Operation::Inspect,
        ),
        (
            service.force_release(&resource, token).await.map(drop),
            Operation::ForceRelease,
        ),
    ] {
        let error = error.unwrap_err();
        assert_eq!((error.operation(), error.backend()), (operation, "mute"));
        assert_eq!(error.resource(), Some(&resource));
        // An operation that only reads has not happened, whatever became of its request.
        let may_have = error.kind() == ErrorKind::Unavailable && operation != Operation::Inspect;
        assert_eq!(error.outcome() == Outcome::Unknown, may_have, "{error}");
    }
}
