use std::time::Duration;

use tonic::Streaming;
use tracing::debug;

use super::{
    acquire::{Acquisition, Ahead, InLine},
    wire::{Compare, Op, RangeRequest, TxnRequest, WatchRequest, WatchResponse, method},
};
use crate::{Error, Moment, Wait};

/// How a wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nobody is before us any more, and our place is still there.
    Ours { waited: bool },
    /// The wait is over.
    Over,
}

/// How long to wait when a watch cannot be had.
const PAUSE: Duration = Duration::from_millis(100);

impl Acquisition<'_> {
    /// Waits until the place is the first in line.
    ///
    /// Only the place before it is watched, so the end of a lease wakes one waiter. That the place
    /// is still there and that nobody is before it is found out in one step: a waiter whose lease
    /// has run out is never granted anything.
    pub(super) async fn wait(&mut self, place: &InLine) -> Result<Turn, Error> {
        let mut looked = None;
        let mut ahead = place.ahead.as_ref();
        let mut waited = false;
        loop {
            if ahead.is_none() {
                looked = Some(self.look(place).await?);
                ahead = looked.as_ref();
            }
            let Some(Ahead { last, revision, .. }) = ahead else {
                continue;
            };
            let Some(last) = last else {
                return Ok(Turn::Ours { waited });
            };
            waited = true;
            if !self.until_change(last, *revision).await? {
                return Ok(Turn::Over);
            }
            ahead = None;
            drop(looked.take());
        }
    }

    /// Who is before the place, which is still there.
    async fn look(&self, place: &InLine) -> Result<Ahead, Error> {
        let before = RangeRequest::youngest(&self.names.line, 1).created_before(place.created);
        let txn = TxnRequest {
            compare: vec![Compare::created(&place.key, place.created)],
            success: vec![Op::range(before)],
            failure: Vec::new(),
        };
        let answer = self.service.txn(&txn).await;
        let answer = answer.map_err(|failure| self.failed(failure))?;
        if !answer.succeeded {
            // Whoever ended it has given the lease back, or it ran out.
            return Err(self.ended(None));
        }
        let revision = answer.revision();
        let before = answer.ranges().next().unwrap_or_default();
        Ok(Ahead {
            number: before.count,
            last: before.kvs.into_iter().next().map(|entry| entry.key),
            revision,
        })
    }

    /// Waits until the key is deleted, or may have been. False if the wait is over.
    ///
    /// What was deleted after that revision is told: the watch begins with the next one. A watch
    /// that began with the revision itself would be served from the history, 100 ms later.
    async fn until_change(&mut self, key: &[u8], revision: i64) -> Result<bool, Error> {
        let until = match self.request.wait {
            Wait::Until(moment) => moment,
            Wait::Never => self.service.now(),
            Wait::Forever => Moment::NEVER,
        };
        if until <= self.service.now() {
            return Ok(false);
        }
        let request = WatchRequest::deletion(key, revision + 1);
        let service = self.service;
        let ttl = self.length();
        let look_again = service.now() + ttl / 2;
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
                // An event may get lost.
                () = service.clock().sleep_until(look_again) => return Ok(true),
                () = service.clock().sleep_until(keep_alive) => {}
            }
            keep_alive = match self.keep_place().await {
                Ok(()) => self.next_keep_alive(),
                Err(error) if error.kind() == crate::ErrorKind::Released => return Ok(true),
                Err(error) => {
                    debug!(%error, "etcd: a waiter could not be kept alive");
                    service.now() + PAUSE
                }
            };
        }
    }

    /// Keeps the lease of the place alive, and what is remembered of it.
    async fn keep_place(&mut self) -> Result<(), Error> {
        self.keep_alive().await?;
        let ttl = self.length();
        if !self.service.remembers(self.memory, ttl) {
            let remembered = self.service.remember(&self.names, ttl).await;
            self.memory = remembered.map_err(|failure| self.failed(failure))?;
        }
        Ok(())
    }

    fn next_keep_alive(&self) -> Moment {
        let (since, ttl) = self.kept.unwrap_or((self.service.now(), Duration::ZERO));
        since + ttl / 3
    }

    /// How long its lease is, as far as we know.
    fn length(&self) -> Duration {
        self.kept.map_or(self.request.ttl.get(), |(_, ttl)| ttl)
    }
}

/// Completes when a deletion is told, or the server watches no more.
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
