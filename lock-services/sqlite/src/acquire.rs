use std::{future::pending, sync::Arc, time::Duration};

use lock_core::{
    Attempt, Error, ErrorKind, FencingToken, Released, Sequencer,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Grant, Lease, Moment, RenewRequest, Renewed, Reply,
        Request, Requests, Wait, Wake,
        support::waiters::{Waiters, Waiting},
    },
};

use super::{
    client::{
        Client,
        Durability::{Flushed, Unflushed},
    },
    look::LookInFile,
    rows::Asker,
    rule::{Acquisition, Granted, Looked},
};

/// So many leases are renewed by one transaction.
const BATCH: usize = 1000;

/// A bound for a wait without bound: 100 years.
const LONGEST_WAIT: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The requests of one attempt, from the moment at which it has a place among the waiters.
pub(super) struct Asking<'a> {
    client: &'a Arc<Client>,
    request: &'a AcquireRequest,
    place: Option<Waiting<LookInFile>>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        client: &'a Arc<Client>,
        waiters: &'a Arc<Waiters<LookInFile>>,
        request: &'a AcquireRequest,
    ) -> Self {
        // Before the first request: a release that comes before its answer is not missed.
        let place = (request.wait != Wait::Never).then(|| waiters.place(&request.attempt));
        Self {
            client,
            request,
            place,
        }
    }

    /// One look, by which it keeps its place in the queue or leaves it.
    async fn look(&self, queue: bool) -> Result<Reply, Error> {
        let asked = self.client.runtime.now();
        let wait = match queue {
            true => time_to_wait(self.request.wait, asked),
            false => None,
        };
        let acquisition = self.client.acquisition(self.request);
        let looked = self
            .client
            .write(Flushed, move |rows| {
                Box::pin(async move { rows.acquire(&acquisition, wait).await })
            })
            .await??;
        Ok(match looked {
            Looked::Granted(granted) => Reply::Granted(grant(granted, asked)?),
            Looked::Held(left) => Reply::Held { left },
            // One task of this process looks for all of them.
            Looked::Waiting(left) => Reply::Queued {
                left,
                look_again: Duration::MAX,
            },
        })
    }
}

impl Requests for Asking<'_> {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        let Request::Look { queue } = request else {
            self.client.cancel(&self.request.attempt).await?;
            return Ok(Reply::Cancelled);
        };
        let reply = self.look(queue).await?;
        if let (Reply::Queued { .. }, Some(place)) = (reply, &self.place) {
            place.queued();
        }
        Ok(reply)
    }

    async fn woken(&self) -> Wake {
        match &self.place {
            Some(place) => place.woken().await,
            None => pending().await,
        }
    }
}

impl Client {
    fn acquisition(&self, request: &AcquireRequest) -> Acquisition {
        let AttemptRef {
            resource,
            holder,
            id,
            ..
        } = &request.attempt;
        Acquisition {
            lease: self.names.of(resource),
            holder: holder.kept_digest(),
            attempt: id.to_string(),
            request: request.clone(),
        }
    }

    /// Takes one look at several resources.
    pub(super) async fn acquire_together(
        self: &Arc<Self>,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let asked = self.runtime.now();
        let all: Vec<_> = requests.iter().map(|one| self.acquisition(one)).collect();
        let together = self.write(Flushed, move |rows| {
            Box::pin(async move { rows.acquire_together(&all).await })
        });
        match together.await?? {
            Ok(granted) => {
                let grants = granted.into_iter().map(|granted| grant(granted, asked));
                grants.collect::<Result<_, _>>().map(Attempt::Granted)
            }
            Err(left) => Ok(Attempt::held(left)),
        }
    }

    pub(super) async fn renew(
        self: &Arc<Self>,
        leases: &[RenewRequest],
    ) -> Vec<Result<Renewed, Error>> {
        let mut answers = Vec::with_capacity(leases.len());
        for batch in leases.chunks(BATCH) {
            match self.renew_batch(batch).await {
                Ok(renewed) => answers.extend(renewed.into_iter().map(Ok)),
                Err(error) => answers.extend(batch.iter().map(|_| Err(error.clone()))),
            }
        }
        answers
    }

    async fn renew_batch(self: &Arc<Self>, leases: &[RenewRequest]) -> Result<Vec<Renewed>, Error> {
        let asked = self.runtime.now();
        let rows = leases.iter().map(|RenewRequest { sequencer, ttl, .. }| {
            let (lease, holder, token) = self.lease_of(sequencer);
            (lease, holder, token, ttl.get())
        });
        let rows: Vec<_> = rows.collect();
        self.write(Flushed, move |file| {
            Box::pin(async move {
                let mut answers = Vec::with_capacity(rows.len());
                for (lease, holder, token, ttl) in rows {
                    let is_renewed = file.renew(&lease, &holder, token, ttl).await?;
                    answers.push(match is_renewed {
                        true => Renewed::Renewed(Lease::counted_from(asked, ttl)),
                        false => Renewed::NotHolder,
                    });
                }
                Ok(answers)
            })
        })
        .await
    }

    pub(super) async fn release(
        self: &Arc<Self>,
        lease: &Sequencer,
        tombstone: bool,
    ) -> Result<Released, Error> {
        let (lease, holder, token) = self.lease_of(lease);
        self.write(Unflushed, move |rows| {
            Box::pin(async move { rows.release(&lease, &holder, token, tombstone).await })
        })
        .await
    }

    pub(super) async fn release_hold(
        self: &Arc<Self>,
        lease: &Sequencer,
        attempt: AttemptId,
    ) -> Result<Released, Error> {
        let (lease, holder, token) = self.lease_of(lease);
        let attempt = attempt.to_string();
        self.write(Unflushed, move |rows| {
            Box::pin(async move {
                let hold = Asker {
                    resource: &lease,
                    holder: &holder,
                    attempt: &attempt,
                };
                rows.release_hold(hold, token).await
            })
        })
        .await
    }

    pub(super) async fn cancel(self: &Arc<Self>, attempt: &AttemptRef) -> Result<(), Error> {
        let lease = self.names.of(&attempt.resource);
        let (holder, attempt) = (attempt.holder.kept_digest(), attempt.id.to_string());
        self.write(Unflushed, move |rows| {
            Box::pin(async move {
                let asker = Asker {
                    resource: &lease,
                    holder: &holder,
                    attempt: &attempt,
                };
                rows.cancel(asker).await
            })
        })
        .await
    }

    fn lease_of(&self, lease: &Sequencer) -> (String, String, i64) {
        let name = self.names.of(lease.resource());
        (name, lease.holder().kept_digest(), lease.token().into())
    }
}

/// At the end of its wait, a request looks once more and leaves the queue.
fn time_to_wait(wait: Wait, now: Moment) -> Option<Duration> {
    match wait {
        Wait::Forever => Some(LONGEST_WAIT),
        wait if wait.is_over(now) => None,
        wait => Some(wait.end(now).since(now).min(LONGEST_WAIT)),
    }
}

fn grant(granted: Granted, asked: Moment) -> Result<Grant, Error> {
    let lease = Lease::counted_from(asked, granted.left);
    Ok(Grant::new(token(granted.token)?, lease).claimed(granted.claimed))
}

pub(super) fn token(number: i64) -> Result<FencingToken, Error> {
    FencingToken::new(number.unsigned_abs()).map_err(|error| {
        Error::unknown(ErrorKind::CounterBroken)
            .because("the token of the lease is no token")
            .caused_by(error)
    })
}
