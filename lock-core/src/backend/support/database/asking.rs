use std::{cmp::min, future::pending, sync::Arc, time::Duration};

use super::{Leases, Waiters, waiters::Waiting};
use crate::{
    Error,
    backend::{AcquireRequest, Moment, Reply, Request, Requests, Wait, Wake},
};

/// The longest time to wait in a queue. It stands for a wait without bound: 100 years.
pub const LONGEST_WAIT: Duration = Duration::from_secs(3_155_760_000);

/// The time that a look with `queue` may still wait. At the end of its wait, a request looks once
/// more and leaves the queue.
#[must_use]
pub fn time_to_wait(wait: Wait, queue: bool, now: Moment) -> Option<Duration> {
    let waits = queue && !wait.is_over(now);
    waits.then(|| min(wait.end(now).since(now), LONGEST_WAIT))
}

/// The requests of one attempt, from the moment at which it has a place among the waiters.
pub(super) struct Asking<'a, D: Leases> {
    database: &'a D,
    request: &'a AcquireRequest,
    place: Option<Waiting<D>>,
}

impl<'a, D: Leases> Asking<'a, D> {
    pub(super) fn new(waiters: &'a Arc<Waiters<D>>, request: &'a AcquireRequest) -> Self {
        // The place is made before the first request, so that a wake-up that comes before the
        // answer is not missed.
        let place = (request.wait != Wait::Never).then(|| waiters.place(&request.attempt));
        Self {
            database: waiters.database(),
            request,
            place,
        }
    }
}

impl<D: Leases> Requests for Asking<'_, D> {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        let Request::Look { queue } = request else {
            self.database.cancel(&self.request.attempt).await?;
            return Ok(Reply::Cancelled);
        };
        let reply = self.database.acquire(self.request, queue).await?;
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
