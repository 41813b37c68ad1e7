use std::time::Duration;

use tonic::Streaming;
use tracing::debug;

use super::{
    acquisition::Acquisition,
    queued::{Ahead, Life, Queued},
    service::Found,
    wire::{Compare, Op, RangeRequest, TxnRequest, WatchRequest, WatchResponse, method},
};
use lock_core::{
    Error,
    backend::{Moment, Upkeep},
};

/// How a wait ends.
#[derive(Debug)]
pub(super) enum Turn {
    /// This look has found that nobody is before us any more, and that our entry was still there.
    Ours { seen: Ahead, waited: bool },
    /// The entry is not there any more.
    Gone,
    /// The wait is over.
    Over,
}

/// How long to wait if a watch cannot be opened.
const PAUSE: Duration = Duration::from_millis(100);

impl Acquisition<'_> {
    /// Waits until the entry is the first in the queue.
    ///
    /// Only the entry before it is watched, so the end of a lease wakes one waiter. One look finds
    /// out that the entry is still there and that nobody is before it, so a waiter whose lease has
    /// run out is never granted anything.
    pub(super) async fn wait(&mut self, entry: &Queued, ahead: Ahead) -> Result<Turn, Error> {
        let (mut seen, mut waited) = (ahead, false);
        loop {
            match &seen.last {
                None if self.lives(&seen, waited).await? => return Ok(Turn::Ours { seen, waited }),
                None => {}
                Some(last) => {
                    waited = true;
                    if !self.until_change(last, seen.revision).await? {
                        return Ok(Turn::Over);
                    }
                }
            }
            seen = match self.look(entry, 1).await? {
                Some(ahead) => ahead,
                None => return Ok(Turn::Gone),
            };
        }
    }

    /// Who is before the entry, up to that number, and what became of the entry. `None` if it is
    /// not there any more: it was ended, or its lease ran out.
    ///
    /// If another client has written its tombstone, ours takes that over.
    pub(super) async fn look(
        &mut self,
        entry: &Queued,
        number: i64,
    ) -> Result<Option<Ahead>, Error> {
        let before = RangeRequest::youngest(&self.names.queue, number);
        let before = before.created_before(entry.created).without_values();
        let names = &self.names;
        let ranges = [
            before,
            RangeRequest::key(&names.entry),
            RangeRequest::key(&names.tombstone),
        ];
        let txn = TxnRequest {
            compare: vec![Compare::created(&names.entry, entry.created)],
            success: ranges.map(Op::range).into(),
            failure: Vec::new(),
        };
        let asked = self.service.now();
        let answer = self.service.txn(&txn).await?;
        if !answer.succeeded {
            return Ok(None);
        }
        let (revision, term) = (answer.revision(), answer.term());
        let mut ranges = answer.ranges();
        let before = ranges.next().unwrap_or_default();
        let found = Found::read(&mut ranges);
        let least = found.entry.as_ref().map_or(0, |own| own.value.least);
        let length = self.length();
        self.service
            .take_over(vec![(self.names.clone(), found)], length);
        Ok(Some(Ahead {
            // The range's own count is that of the whole queue.
            number: i64::try_from(before.kvs.len()).unwrap_or(i64::MAX),
            last: before.kvs.into_iter().next().map(|kv| kv.key),
            least,
            asked,
            revision,
            term,
        }))
    }

    /// Whether the lease of an entry that was the first at that look is known to live for as long
    /// as we think, because the leader that said so still led at the time of the look. If not, it
    /// is kept alive, or its time left asked for, once more, and it takes another look. The same
    /// goes for a waiter that reads only after the end of its lease that it is the first.
    async fn lives(&mut self, seen: &Ahead, waited: bool) -> Result<bool, Error> {
        // If nobody is about to renew it, it has to have its full length.
        let full = waited && self.request.upkeep == Upkeep::None;
        if full && !self.keep_alive().await? {
            return Ok(false);
        }
        let proven = self.kept.and_then(|life| life.proven_by(seen));
        let now = self.service.now();
        if let Some(life) = proven.filter(|life| !waited || now < life.end()) {
            self.kept = Some(life);
            return Ok(true);
        }
        if waited {
            self.keep_alive().await?;
        } else {
            self.time_left().await?;
        }
        Ok(false)
    }

    /// Waits until the key is deleted, or may have been. False if the wait is over.
    ///
    /// The watch begins with the next revision, and tells of every later deletion. A watch that
    /// began with that revision itself would be served from the history, 100 ms later.
    async fn until_change(&mut self, key: &[u8], revision: i64) -> Result<bool, Error> {
        let (now, until) = (self.service.now(), self.request.wait.limit());
        if self.request.wait.is_over(now) {
            return Ok(false);
        }
        let request = WatchRequest::deletion(key, revision + 1);
        let service = self.service;
        // An event may get lost.
        let look_again = now + self.length() / 2;
        let mut deleted = std::pin::pin!(async {
            if let Err(status) = deletion(service.client.open(method::WATCH, request)).await {
                debug!(%status, "etcd: no watch");
                service.clock().sleep_until(service.now() + PAUSE).await;
            }
        });
        let mut keep_alive = self.next_keep_alive();
        loop {
            tokio::select! {
                biased;
                () = &mut deleted => return Ok(true),
                () = service.clock().sleep_until(until) => return Ok(false),
                () = service.clock().sleep_until(look_again) => return Ok(true),
                () = service.clock().sleep_until(keep_alive) => {}
            }
            keep_alive = match self.keep_alive().await {
                Ok(true) => self.next_keep_alive(),
                Ok(false) => return Ok(true),
                Err(error) => {
                    debug!(%error, "etcd: a waiter could not be kept alive");
                    service.now() + PAUSE
                }
            };
        }
    }

    fn next_keep_alive(&self) -> Moment {
        let due = |life: Life| life.since + life.ttl / 3;
        self.kept.map_or_else(|| self.service.now(), due)
    }
}

/// Completes when a deletion is reported, or the server has ended the watch.
async fn deletion(
    opened: impl Future<Output = Result<Streaming<WatchResponse>, tonic::Status>>,
) -> Result<(), tonic::Status> {
    let mut watch = opened.await?;
    loop {
        match watch.message().await? {
            Some(answer) if answer.tells_deletion() || answer.canceled => return Ok(()),
            Some(_) => {}
            None => return Err(tonic::Status::unavailable("the watch has ended")),
        }
    }
}
