//! The requests of one attempt to acquire.

use std::{mem, sync::Arc, time::Duration};

use tokio::sync::{Mutex, Notify};

use super::{
    attempt::{Attempt, may_be_queued},
    enqueue::Enqueued,
    leases::without_slack,
    queued::{Ahead, Queued},
    record::token,
    service::{Service, TRIES, crowded},
};
use lock_core::{
    Error, ErrorKind,
    backend::{AcquireRequest, Grant, Lease, Reply, Request, Requests, Wake},
};

/// An attempt that could not watch or keep its lease alive looks again after this time.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The requests of one attempt.
pub(super) struct Asking<'a> {
    service: &'a Service,
    /// The attempt. A request locks it until the request is answered or dropped. At other times the
    /// wait for a change locks it.
    attempt: Mutex<Attempt<'a>>,
    /// Notifies the wait for a change that a request needs the attempt.
    sends: Notify,
}

impl<'a> Asking<'a> {
    pub(super) fn new(service: &'a Arc<Service>, request: &'a AcquireRequest) -> Self {
        Self {
            service,
            attempt: Mutex::new(Attempt::new(service, request)),
            sends: Notify::new(),
        }
    }
}

impl Requests for Asking<'_> {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        self.sends.notify_waiters();
        let mut attempt = self.attempt.lock().await;
        match request {
            Request::Look { queue } => attempt.ask(queue).await,
            Request::Confirm(_) | Request::Release { .. } | Request::Cancel => {
                attempt.leave().await?;
                Ok(Reply::Cancelled)
            }
        }
    }

    fn has_copied(&self) -> bool {
        let attempt = self.attempt.try_lock();
        attempt.map_or(true, |attempt| attempt.copied)
    }

    fn longest_request(&self) -> Duration {
        self.service.client.longest_call()
    }

    /// Gives the attempt to a request that needs it, and goes on waiting after that.
    async fn woken(&self) -> Wake {
        loop {
            let mut attempt = self.attempt.lock().await;
            tokio::select! {
                biased;
                () = attempt.until_change() => return Wake::Look,
                () = self.sends.notified() => {}
            }
        }
    }
}

impl Attempt<'_> {
    /// Makes or finds the entry of the attempt, and looks whether the entry is the first in the
    /// queue.
    async fn ask(&mut self, queue: bool) -> Result<Reply, Error> {
        self.before = None;
        if let Some(kind) = self.refusal {
            return self.refuse(kind).await;
        }
        if let (Some(floor), None) = (self.request.floor, &self.place) {
            self.service.check_plausible(floor).await?;
        }
        for turn in 0..TRIES {
            let is_new = self.place.is_none();
            let mut entered = self.entry_and_ahead(queue).await;
            if turn > 0 || self.place.is_some() {
                // An earlier turn may have left something, as with `insist`.
                entered = entered.map_err(may_be_queued);
            }
            let (entry, ahead) = match entered? {
                Enqueued::Queued(entry, ahead) => (entry, ahead),
                Enqueued::Held => {
                    let left = self.holders_time_left().await?;
                    return Ok(Reply::Held { left });
                }
                Enqueued::Retry => continue,
            };
            self.place = Some(entry);
            if is_new && queue && self.is_one_too_many(&ahead) {
                return self.refuse(ErrorKind::QueueFull).await;
            }
            let reply = self.reply_for(entry, ahead, queue).await;
            if let Some(reply) = reply.map_err(may_be_queued)? {
                return Ok(reply);
            }
        }
        Err(may_be_queued(crowded()))
    }

    /// Makes the entry, or looks at the entry that the attempt has.
    async fn entry_and_ahead(&mut self, queue: bool) -> Result<Enqueued, Error> {
        let Some(entry) = self.place else {
            return self.enqueue(queue).await;
        };
        match self.look(&entry, 1).await? {
            Some(ahead) => Ok(Enqueued::Queued(entry, ahead)),
            None => self.gone(),
        }
    }

    /// The reply for an entry with these entries before it. `None` if another look is needed.
    async fn reply_for(
        &mut self,
        entry: Queued,
        ahead: Ahead,
        queue: bool,
    ) -> Result<Option<Reply>, Error> {
        if let Some(before) = ahead.last {
            let reply = self.queued((before, ahead.revision), queue).await?;
            return Ok(Some(reply));
        }
        if !self.lives(&ahead).await? {
            return Ok(None);
        }
        let Some(token) = token(entry.floor, entry.created) else {
            return self.refuse(ErrorKind::TokensExhausted).await.map(Some);
        };
        if token.get() < ahead.least {
            // The next turn makes a new entry, even if the answer to this request is lost.
            self.place = None;
            self.leave_for_more(&entry, &ahead).await?;
            self.lose_lease();
            return Ok(None);
        }
        let Some(life) = self.kept else {
            return Ok(None);
        };
        // The slack is not counted, because the next acquisition that uses the lease may use it up.
        let until = std::cmp::min(life.end(), ahead.asked + without_slack(life.length));
        let lease = Lease::counted_from(ahead.asked, until.since(ahead.asked));
        Ok(Some(Reply::Granted(Grant::new(token, lease))))
    }

    /// Waits behind another entry, or is about to leave the queue.
    async fn queued(&mut self, before: (Vec<u8>, i64), queue: bool) -> Result<Reply, Error> {
        self.waited = true;
        let is_over = !queue || self.request.wait.is_over(self.service.now());
        let left = match is_over {
            true => self.holders_time_left().await?,
            false => self.length(),
        };
        let look_again = match mem::take(&mut self.is_deaf) {
            true => LOOK_AGAIN,
            false => {
                self.before = Some(before);
                // The watch may lose a notice.
                self.length() / 2
            }
        };
        Ok(Reply::Queued { left, look_again })
    }

    /// The entry has gone with its lease, or another client has ended it. If there is a tombstone,
    /// the tombstone says so.
    fn gone(&mut self) -> Result<Enqueued, Error> {
        self.place = None;
        self.lose_lease();
        match self.leaves_tombstone() {
            true => Ok(Enqueued::Retry),
            false => Err(Error::not_applied(ErrorKind::Released)),
        }
    }

    /// Leaves the queue with this error.
    async fn refuse(&mut self, kind: ErrorKind) -> Result<Reply, Error> {
        self.refusal = Some(kind);
        self.leave().await.map_err(Error::outcome_unknown)?;
        Err(Error::not_applied(kind))
    }

    async fn holders_time_left(&self) -> Result<Duration, Error> {
        let resource = &self.request.attempt.resource;
        Ok(self.service.time_left(resource).await?)
    }

    /// Whether the greatest allowed number was already waiting when the attempt came. If the entry
    /// was there before, fewer entries may be ahead of it by now, but never more.
    fn is_one_too_many(&self, ahead: &Ahead) -> bool {
        // The first entry ahead holds the resource, and does not wait.
        let most = self.request.max_waiters;
        most.is_some_and(|most| ahead.number > i64::from(most))
    }
}
