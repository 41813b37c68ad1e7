//! The contract of lock services, implemented at the client's end of the network.

use std::{fmt, sync::Arc};

use lock_core::{
    Attempt, Capabilities, Error, ErrorKind, Extension, FencingToken, Inspection, Listed, Released,
    ResourceName, Sequencer,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Forced, Grant, Lease, LockBackend, RenewRequest,
        Renewed, Requests, Runtime, repeat,
    },
};

use super::{
    asker::{Asker, Client},
    attempting::Attempting,
    network::{Network, Work},
    observe::Kind,
    settings::Settings,
};

/// A client's end of the network: the lock service as this client has it.
#[derive(Clone)]
pub struct SimBackend {
    pub(super) network: Arc<Network>,
    pub(super) client: Arc<Client>,
    pub(super) settings: Settings,
}

impl SimBackend {
    /// The kind of the service, which is the issuer of its tokens.
    pub const KIND: &str = "simulated";

    pub(super) const fn new(
        network: Arc<Network>,
        client: Arc<Client>,
        settings: Settings,
    ) -> Self {
        Self {
            network,
            client,
            settings,
        }
    }

    /// Sends a request that belongs to no attempt, or whose copy is harmless.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        kind: Kind,
        resource: Option<&ResourceName>,
        work: impl Work<T>,
    ) -> Result<T, Error> {
        let timeout = self.settings.request_timeout;
        self.network
            .call(&self.client, (kind, resource), timeout, || {}, work)
            .await
    }

    fn check(&self, extension: Extension) -> Result<(), Error> {
        match self.settings.capabilities().has(extension) {
            true => Ok(()),
            false => Err(Error::not_applied(ErrorKind::Unsupported)
                .because("this lock service does not have it")),
        }
    }
}

impl LockBackend for SimBackend {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn capabilities(&self) -> Capabilities {
        self.settings.capabilities()
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.client.runtime)
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        Attempting::new(self, request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let (sent, requests) = (self.client.runtime.now(), Arc::<[_]>::from(leases));
        let resource = leases.first().map(|lease| lease.sequencer.resource());
        let renewed = self.call(Kind::Renew, resource, move |table, step| {
            let renewed = requests.iter().map(|request: &RenewRequest| {
                let mut visit = table.visit(request.sequencer.resource(), step);
                visit.renew(request)
            });
            Ok(renewed.collect::<Vec<_>>())
        });
        match renewed.await {
            Ok(renewed) => {
                let answers = leases.iter().zip(renewed);
                let answers = answers.map(|(lease, is_renewed)| {
                    Ok(match is_renewed {
                        true => Renewed::Renewed(Lease::counted_from(sent, lease.ttl.get())),
                        false => Renewed::NotHolder,
                    })
                });
                answers.collect()
            }
            Err(error) => leases.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        let ended = lease.clone();
        self.call(Kind::Release, Some(lease.resource()), move |table, step| {
            let mut visit = table.visit(ended.resource(), step);
            Ok(visit.release(&ended, tombstone))
        })
        .await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let ended = attempt.clone();
        self.call(Kind::Cancel, Some(&attempt.resource), move |table, step| {
            table.visit(&ended.resource, step).cancel(&ended);
            Ok(())
        })
        .await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let inspected = resource.clone();
        self.call(Kind::Inspect, Some(resource), move |table, step| {
            Ok(table.visit(&inspected, step).inspect())
        })
        .await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        self.check(Extension::Holds)?;
        let ended = lease.clone();
        self.call(
            Kind::ReleaseHold,
            Some(lease.resource()),
            move |table, step| {
                let mut visit = table.visit(ended.resource(), step);
                Ok(visit.release_hold(&ended, attempt))
            },
        )
        .await
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        self.check(Extension::ForceRelease)?;
        let force = || {
            let name = resource.clone();
            self.call(Kind::ForceRelease, Some(resource), move |table, step| {
                table.visit(&name, step).force_release(token)
            })
        };
        repeat(&*self.client.runtime, force).await
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        self.check(Extension::List)?;
        self.call(Kind::List, None, |table, step| Ok(table.list(step)))
            .await
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        self.check(Extension::Together)?;
        let sent = self.client.runtime.now();
        let askers = requests.iter();
        let askers: Arc<[_]> = askers
            .map(|request| Asker::new(&self.client, request))
            .collect();
        let resource = requests.first().map(|first| &first.attempt.resource);
        let answer = self.call(Kind::Together, resource, move |table, step| {
            table.together(&askers, step)
        });
        let grants = answer.await?.map(|given| {
            let given = given.into_iter().zip(requests);
            given
                .map(|(given, request)| given.grant(sent, request.ttl))
                .collect()
        });
        Ok(grants)
    }
}

impl fmt::Debug for SimBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimBackend")
            .field("client", &self.client.number)
            .finish_non_exhaustive()
    }
}
