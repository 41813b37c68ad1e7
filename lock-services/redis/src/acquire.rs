//! The requests of one attempt to acquire, and the push that grants it.

use std::{
    future::pending,
    mem,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    RedisBackend,
    answers::RenewedWord,
    look::Look,
    pushes::{News, Place, Reach, Reached},
};
use lock_core::{
    Error,
    backend::{AcquireRequest, Grant, Lease, Reply, Request, Requests, Wait, Wake, support::lock},
};

/// The requests of one attempt.
pub(super) struct Attempting<'a> {
    backend: &'a RedisBackend,
    request: &'a AcquireRequest,
    look: Look<'a>,
    /// The place where news for the attempt arrives. It is made before the first request that takes
    /// a place in the queue, or when the attempt first needs a channel.
    place: OnceLock<Place>,
    /// The reach of pushes as the last request knew it.
    reach: Mutex<Reached>,
    /// Whether this attempt may have a place in the queue at the server.
    has_place: AtomicBool,
}

impl<'a> Attempting<'a> {
    pub(super) fn new(backend: &'a RedisBackend, request: &'a AcquireRequest) -> Self {
        Self {
            backend,
            request,
            look: Look::new(&backend.service, request),
            place: OnceLock::new(),
            reach: Mutex::default(),
            has_place: AtomicBool::new(false),
        }
    }

    fn place(&self) -> &Place {
        let id = self.request.attempt.id;
        let enter = || self.backend.pushes.enter(id, self.look.shard());
        self.place.get_or_init(enter)
    }

    /// Looks once. With `queue` the request names the client to which the server pushes.
    async fn look(&self, queue: bool) -> Result<Reply, Error> {
        let pushes = &self.backend.pushes;
        if queue {
            self.place();
        }
        let reach = pushes.reach(self.look.shard());
        *lock(&self.reach) = reach;
        let client = queue.then(|| match reach.now {
            Reach::Subscribed => pushes.client(),
            Reach::No | Reach::Denied => "",
        });
        self.has_place.fetch_or(queue, Ordering::Relaxed);
        let reply = self.look.send(client).await?;
        let Reply::Held { left } = reply else {
            return Ok(reply);
        };
        if self.has_place.load(Ordering::Relaxed) {
            let look_again = left;
            return Ok(Reply::Queued { left, look_again });
        }
        // It takes a while to make a channel, and only an attempt that waits needs one.
        if self.request.wait != Wait::Never {
            self.place();
            pushes.want(self.look.shard());
        }
        Ok(reply)
    }

    /// Confirms a pushed grant. Its lease is short until then.
    async fn confirm(&self, offer: Grant) -> Result<Reply, Error> {
        let AcquireRequest { attempt, ttl, .. } = self.request;
        let (service, digest) = (&self.backend.service, &attempt.holder.digest());
        let (renewals, now) = (&self.backend.renewals, service.runtime.now());
        let confirmed = service.confirm(renewals, &attempt.resource, digest, offer.token, *ttl);
        Ok(match confirmed.await? {
            RenewedWord::Renewed => {
                let lease = Lease::counted_from(now, ttl.get());
                Reply::Granted(Grant::new(offer.token, lease))
            }
            _ => Reply::Gone,
        })
    }
}

impl Requests for Attempting<'_> {
    /// Without a channel a place in the queue is of little use, and it takes a while to make a
    /// channel. A free resource is granted without both.
    fn hears(&self) -> bool {
        self.backend.pushes.reach(self.look.shard()).now != Reach::No
    }

    async fn send(&self, request: Request) -> Result<Reply, Error> {
        let reply = match request {
            Request::Look { queue } => self.look(queue).await?,
            Request::Confirm(offer) => self.confirm(offer).await?,
            Request::Release { .. } | Request::Cancel => {
                self.backend.service.cancel(&self.request.attempt).await?;
                Reply::Cancelled
            }
        };
        if let (Some(replication), Reply::Granted(grant)) = (&self.backend.replication, &reply) {
            let (requests, grants) = (
                std::slice::from_ref(self.request),
                std::slice::from_ref(grant),
            );
            replication
                .secure(&self.backend.service, requests, grants)
                .await?;
        }
        Ok(reply)
    }

    async fn woken(&self) -> Wake {
        let Some(place) = self.place.get() else {
            return pending().await;
        };
        loop {
            match place.news().await {
                News::Pushed(pushed) => {
                    let grant = self.look.offer_of(pushed);
                    // A grant that has ended by now is only an offer, so that the attempt looks
                    // again.
                    let is_whole = pushed.is_whole && pushed.received < grant.lease.deadline();
                    return match is_whole {
                        true => Wake::Granted(grant),
                        false => Wake::Offered(grant),
                    };
                }
                News::Reach => {
                    let reach = self.backend.pushes.reach(self.look.shard());
                    if mem::replace(&mut *lock(&self.reach), reach) != reach {
                        return Wake::Look;
                    }
                }
            }
        }
    }
}
