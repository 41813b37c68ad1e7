use std::{cmp::min, sync::Arc};

use lock_core::{
    Error, Ttl,
    backend::{
        AcquireRequest, Grant, Lease, LockBackend as _, Moment, Reply, Request, Requests, Wake,
    },
};

use super::{
    asker::Asker,
    backend::SimBackend,
    observe::Kind,
    table::{Given, Looked},
};

/// The requests of one attempt.
pub(super) struct Attempting<'a> {
    backend: &'a SimBackend,
    asker: Arc<Asker>,
}

impl<'a> Attempting<'a> {
    pub(super) fn new(backend: &'a SimBackend, request: &AcquireRequest) -> Self {
        Self {
            backend,
            asker: Asker::new(&backend.client, request),
        }
    }

    async fn look(&self, queue: bool) -> Result<Reply, Error> {
        let SimBackend {
            network,
            client,
            settings,
        } = self.backend;
        let (sent, asker) = (client.runtime.now(), Arc::clone(&self.asker));
        let is_again = asker.sends(sent);
        let resource = Some(&self.asker.attempt().resource);
        let look = network.call(
            client,
            (Kind::Look { queue }, resource),
            settings.request_timeout,
            || self.asker.set_copied(),
            move |table, step| {
                let looked = table
                    .visit(&asker.attempt().resource, step)
                    .look(&asker, queue)?;
                Ok((looked, step.stamp()))
            },
        );
        let (looked, stamp) = look.await?;
        let ttl = self.asker.request().ttl;
        let now = client.runtime.now();
        let is_short = |grant: Grant| grant.lease.deadline().since(now) < ttl.get() / 2;
        Ok(match looked {
            // The lease was pushed, and the push was lost: it has to be confirmed to be of use.
            Looked::Granted(given) if is_again && is_short(given.grant(sent, ttl)) => {
                Reply::Offered(given.grant(sent, ttl))
            }
            Looked::Granted(given) => Reply::Granted(given.grant(sent, ttl)),
            Looked::Offered(given) => Reply::Offered(given.grant(sent, ttl)),
            Looked::Held { left } => Reply::Held { left },
            Looked::Queued { left } => {
                self.asker.answered(sent, stamp);
                let look_again = min(left, settings.look_again);
                Reply::Queued { left, look_again }
            }
        })
    }

    async fn confirm(&self, offer: Grant) -> Result<Reply, Error> {
        let (sent, token) = (self.backend.client.runtime.now(), offer.token);
        let (asker, ttl) = (Arc::clone(&self.asker), self.asker.request().ttl);
        let resource = Some(&self.asker.attempt().resource);
        let confirm = self
            .backend
            .call(Kind::Confirm, resource, move |table, step| {
                let attempt = asker.attempt();
                let mut visit = table.visit(&attempt.resource, step);
                Ok(visit.confirm(attempt.holder, token, ttl))
            });
        Ok(match confirm.await? {
            true => Reply::Granted(Grant::new(token, Lease::counted_from(sent, ttl.get()))),
            false => Reply::Gone,
        })
    }
}

impl Given {
    /// A lease is no longer than was requested, wherever the service's clock jumps.
    pub(super) fn grant(self, sent: Moment, ttl: Ttl) -> Grant {
        let lease = Lease::counted_from(sent, min(self.left, ttl.get()));
        Grant::new(self.token, lease)
    }
}

impl Requests for Attempting<'_> {
    fn hears(&self) -> bool {
        self.backend.settings.hears
    }

    async fn send(&self, request: Request) -> Result<Reply, Error> {
        match request {
            Request::Look { queue } => self.look(queue).await,
            Request::Confirm(offer) => self.confirm(offer).await,
            Request::Release { .. } | Request::Cancel => {
                self.backend.cancel(self.asker.attempt()).await?;
                Ok(Reply::Cancelled)
            }
        }
    }

    fn has_copied(&self) -> bool {
        self.asker.is_copied()
    }

    async fn woken(&self) -> Wake {
        self.asker.woken().await
    }
}
