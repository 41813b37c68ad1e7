use std::time::Duration;

use tonic::Streaming;
use tracing::debug;

use super::{
    acquisition::Acquisition,
    in_line::{Ahead, InLine, Life},
    record::{Kept, Place},
    successors::Herald,
    wire::{Compare, Op, RangeRequest, TxnRequest, WatchRequest, WatchResponse, method},
};
use lock_core::{Error, Moment, Upkeep};

/// How a wait ends.
#[derive(Debug)]
pub(super) enum Turn {
    /// This look, or a release that has looked, has found that nobody is before us any more, and
    /// that our place was still there.
    Ours { seen: Ahead, waited: bool },
    /// The place is not there any more.
    Gone,
    /// The wait is over.
    Over,
}

/// What ends the wait for one place to go.
enum Woken {
    /// A release in this process has found that we are the first.
    Told(Ahead),
    /// Only a look can tell.
    Perhaps,
    /// The wait is over.
    Over,
}

/// How long to wait if a watch cannot be opened, and at most for an answer to a release that is
/// under way.
const PAUSE: Duration = Duration::from_millis(100);

impl Acquisition<'_> {
    /// Waits until the place is the first in line.
    ///
    /// Only the place before it is watched, so the end of a lease wakes one waiter. One step finds
    /// out that the place is still there and that nobody is before it, so a waiter whose lease has
    /// run out is never granted anything. That step is a look of ours, or the release of who was
    /// before us, if that was in this process.
    pub(super) async fn wait(&mut self, place: &InLine, ahead: Ahead) -> Result<Turn, Error> {
        let service = self.service;
        let (mut seen, mut waited, mut herald) = (ahead, false, None);
        loop {
            match &seen.last {
                None if self.lives(&seen, waited).await? => return Ok(Turn::Ours { seen, waited }),
                None => {}
                Some(last) => {
                    waited = true;
                    let waits = || service.successors.wait(&self.names.line, place);
                    let told = herald.get_or_insert_with(waits);
                    match self.until_change(last, seen.revision, told).await? {
                        Woken::Told(ahead) => {
                            (seen, herald) = (ahead, None);
                            continue;
                        }
                        Woken::Perhaps => {}
                        Woken::Over => return Ok(Turn::Over),
                    }
                }
            }
            seen = match self.look(place, 1).await? {
                Some(ahead) => ahead,
                None => return Ok(Turn::Gone),
            };
        }
    }

    /// Who is before the place, up to that number, and what became of the place. `None` if it is
    /// not there any more: it was ended, and its lease given back, or the lease ran out.
    ///
    /// If the mark is due to be moved to another lease, this also finds out which one it is
    /// attached to.
    pub(super) async fn look(
        &mut self,
        place: &InLine,
        number: i64,
    ) -> Result<Option<Ahead>, Error> {
        let before = RangeRequest::youngest(&self.names.line, number);
        let before = before.created_before(place.created).without_values();
        let mut success = vec![Op::range(before), Op::range(RangeRequest::key(&place.key))];
        if !self.is_remembered() {
            success.push(Op::range(RangeRequest::key(&self.names.mark)));
        }
        let txn = TxnRequest {
            compare: vec![Compare::created(&place.key, place.created)],
            success,
            failure: Vec::new(),
        };
        let asked = self.service.now();
        let answer = self.service.txn(&txn).await;
        let answer = answer.map_err(|failure| self.failed(failure))?;
        if !answer.succeeded {
            return Ok(None);
        }
        let (revision, term) = (answer.revision(), answer.term());
        let mut ranges = answer.ranges();
        let before = ranges.next().unwrap_or_default();
        let mut first = || ranges.next().and_then(|range| range.kvs.into_iter().next());
        let (own, mark) = (first(), first());
        if let Some(mark) = mark {
            self.memory = mark.lease;
        }
        Ok(Some(Ahead {
            // The range's own count is that of the whole line.
            number: i64::try_from(before.kvs.len()).unwrap_or(i64::MAX),
            last: before.kvs.into_iter().next().map(|entry| entry.key),
            least: own.map_or(0, |own| Kept::<Place>::read(&own).value.least),
            asked,
            revision,
            term,
        }))
    }

    /// Whether the lease of a place that was the first at that look is known to live for as long as
    /// we think, because the leader that said so still led at the time of the look. If not, it is
    /// kept alive, or its time left asked for, once more, and it takes another look. The same goes
    /// for a waiter that reads only after the end of its lease that it is the first.
    async fn lives(&mut self, seen: &Ahead, waited: bool) -> Result<bool, Error> {
        // If nobody is about to renew it, it has to have its full length.
        let full = waited && self.request.upkeep == Upkeep::None;
        if full && !self.keep_alive().await? {
            return Ok(false);
        }
        let proven = self.kept.and_then(|life| life.proven_by(seen));
        let now = self.service.now();
        if let Some(life) = proven.filter(|life| !waited || now < life.since + life.ttl) {
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

    /// Waits until the key is deleted, or may have been.
    ///
    /// The watch begins with the next revision, and tells of every later deletion. A watch that
    /// began with that revision itself would be served from the history, 100 ms later.
    async fn until_change(
        &mut self,
        key: &[u8],
        revision: i64,
        herald: &mut Herald<'_>,
    ) -> Result<Woken, Error> {
        let (now, until) = (self.service.now(), self.request.wait.limit());
        if self.request.wait.is_over(now) {
            return Ok(Woken::Over);
        }
        let request = WatchRequest::deletion(key, revision + 1);
        let (service, line) = (self.service, self.names.line.clone());
        let ttl = self.length();
        let look_again = now + ttl / 2;
        let mut deleted = std::pin::pin!(async {
            match deletion(service.client.open(method::WATCH, request)).await {
                // The answer to that release is right behind the news, and tells more.
                Ok(()) if service.successors.is_being_released(&line) => {}
                Ok(()) => return,
                Err(status) => debug!(%status, "etcd: no watch"),
            }
            service.clock().sleep_until(service.now() + PAUSE).await;
        });
        let mut keep_alive = self.next_keep_alive();
        loop {
            tokio::select! {
                biased;
                seen = herald.told() => return Ok(Woken::Told(seen)),
                () = &mut deleted => return Ok(Woken::Perhaps),
                () = service.clock().sleep_until(until) => return Ok(Woken::Over),
                // An event may get lost.
                () = service.clock().sleep_until(look_again) => return Ok(Woken::Perhaps),
                () = service.clock().sleep_until(keep_alive) => {}
            }
            keep_alive = match self.keep_place().await {
                Ok(true) => self.next_keep_alive(),
                Ok(false) => return Ok(Woken::Perhaps),
                Err(error) => {
                    debug!(%error, "etcd: a waiter could not be kept alive");
                    service.now() + PAUSE
                }
            };
        }
    }

    /// Keeps the lease of the place alive, and has it remembered for long enough. False if it has
    /// ended.
    ///
    /// The latter is a change, which may take longer than the lease lives, so it is not waited for.
    /// The next look shows whether it was made.
    async fn keep_place(&mut self) -> Result<bool, Error> {
        let lives = self.keep_alive().await?;
        if lives && !self.is_remembered() {
            let (names, ttl) = (self.names.clone(), self.length());
            self.service.remember_soon(names, ttl);
        }
        Ok(lives)
    }

    /// Whether its mark is attached to a lease that lasts long enough, as far as we know.
    fn is_remembered(&self) -> bool {
        let ttl = self.length();
        self.service.remembers(self.memory, &self.names, ttl)
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
