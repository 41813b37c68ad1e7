use std::{future::pending, pin::pin};

use tonic::Streaming;
use tracing::debug;

use super::{
    attempt::Attempt,
    queued::{Ahead, Life, Queued},
    service::Found,
    wire::{Compare, Op, RangeRequest, TxnRequest, WatchRequest, WatchResponse, method},
};
use lock_core::{
    Error,
    backend::{Moment, Upkeep},
};

impl Attempt<'_> {
    /// The entries before this one, up to this number, and the entry itself. `None` if the entry is
    /// not there any more: it was ended, or its lease ran out.
    ///
    /// If another client was the last to write its tombstone, this client takes over the tombstone.
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
            // The count in the answer would be the number of entries in the whole queue.
            number: i64::try_from(before.kvs.len()).unwrap_or(i64::MAX),
            last: before.kvs.into_iter().next().map(|kv| kv.key),
            least,
            asked,
            revision,
            term,
        }))
    }

    /// Whether the lease of an entry that was the first at this look is known to live for as long
    /// as this client thinks. It is known if the leader that said so still led at the time of the
    /// look. If it is not known, the lease is kept alive once more, or its time left is asked for
    /// once more, and another look is needed. Another look is also needed if an attempt that waited
    /// learns only after the end of its lease that it is the first.
    pub(super) async fn lives(&mut self, seen: &Ahead) -> Result<bool, Error> {
        let waited = self.waited;
        // If no watchdog is about to renew the lease, it must have its full length.
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

    /// Waits until the entry before this one is deleted, or may have been deleted, and keeps the
    /// lease of this entry alive during the wait.
    ///
    /// Only the entry before this one is watched, so the end of a lease wakes one waiter. The watch
    /// begins with the revision after the look, and reports every later deletion. A watch from the
    /// revision of the look would be served from the history, 100 ms later.
    ///
    /// # Cancel safety
    /// Cancel safe: the next call watches from the same revision.
    pub(super) async fn until_change(&mut self) {
        let Some((key, revision)) = &self.before else {
            return pending().await;
        };
        let request = WatchRequest::deletion(key, revision + 1);
        let service = self.service;
        let mut deleted = pin!(deletion(service.client.open(method::WATCH, request)));
        loop {
            let watched = tokio::select! {
                biased;
                () = service.runtime().sleep_until(self.next_keep_alive()) => None,
                watched = &mut deleted => Some(watched),
            };
            match watched {
                Some(Ok(())) => return,
                Some(Err(status)) => {
                    debug!(%status, "etcd: no watch");
                    return self.goes_deaf();
                }
                None => match self.keep_alive().await {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => {
                        debug!(%error, "etcd: a waiter could not be kept alive");
                        return self.goes_deaf();
                    }
                },
            }
        }
    }

    /// Gives up the watch. The next look shows whether the service answers at all.
    fn goes_deaf(&mut self) {
        (self.before, self.is_deaf) = (None, true);
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
