use std::time::Duration;

use tracing::debug;

use super::{
    acquire::{Acquisition, Ahead, InLine, Life},
    front::{Change, Front, SHOWN},
    record::{Kept, Place},
    wire::{Compare, Op, RangeRequest, TxnRequest},
};
use crate::{Error, Moment, Upkeep, Wait};

/// How a wait ends.
#[derive(Debug)]
pub(super) enum Turn {
    /// Nobody is before us any more, and our place was there then, as a look has found or a watch
    /// has told.
    Ours { seen: Ahead, waited: bool },
    /// The place is not there any more.
    Gone,
    /// The wait is over.
    Over,
}

/// How long to wait when a watch cannot be had, or a lease could not be kept alive.
const PAUSE: Duration = Duration::from_millis(100);

impl Acquisition<'_> {
    /// Waits until the place is the first in line.
    ///
    /// That the place is there and that nobody is before it is found out in one step, or told by
    /// one watch: a waiter whose lease has run out is never granted anything.
    pub(super) async fn wait(&mut self, place: &mut InLine) -> Result<Turn, Error> {
        let (mut ahead, mut waited) = (place.ahead.take(), false);
        loop {
            let seen = match ahead.take() {
                Some(ahead) => ahead,
                None => match self.look(place).await? {
                    Some(ahead) => ahead,
                    None => return Ok(Turn::Gone),
                },
            };
            self.prove(self.kept, &seen);
            if seen.before.is_empty() {
                if self.lives(&seen, waited).await? {
                    return Ok(Turn::Ours { seen, waited });
                }
                continue;
            }
            waited = true;
            match self.until_change(place, &seen).await? {
                Change::First(seen) if self.is_proven_to_live() => {
                    return Ok(Turn::Ours { seen, waited });
                }
                Change::First(_) | Change::Perhaps => {}
                Change::Seen(seen) => ahead = Some(seen),
                Change::Over => return Ok(Turn::Over),
            }
        }
    }

    /// Who is before the place, and what became of it; nothing if it is not there any more: whoever
    /// ended it has given the lease back, or it ran out.
    async fn look(&self, place: &InLine) -> Result<Option<Ahead>, Error> {
        let before = RangeRequest::youngest(&self.names.line, SHOWN)
            .keys_only()
            .created_before(place.created);
        let txn = TxnRequest {
            compare: vec![Compare::created(&place.key, place.created)],
            success: vec![Op::range(before), Op::range(RangeRequest::key(&place.key))],
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
        let own = ranges.flat_map(|range| range.kvs).next();
        Ok(Some(Ahead {
            number: 0,
            before: before.kvs.into_iter().map(|entry| entry.key).collect(),
            least: own.map_or(0, |own| Kept::<Place>::read(&own).value.least),
            asked,
            revision,
            term,
        }))
    }

    /// Whether the lease of a place, which that look has found to be the first, is known to live
    /// for as long as we think: whoever said so led at the time of the look. Otherwise he is asked
    /// again, and it is time for another look.
    async fn lives(&mut self, seen: &Ahead, waited: bool) -> Result<bool, Error> {
        // Nobody may renew it soon: it has its full length.
        let full = waited && self.request.upkeep == Upkeep::None;
        if full && !self.keep_alive().await? {
            return Ok(false);
        }
        // Who waited may have slept. Who asks again is told what is left, however little.
        if self.prove(self.kept, seen) && (!waited || self.has_time_left()) {
            return Ok(true);
        }
        if waited {
            self.keep_alive().await?;
        } else {
            self.time_left().await?;
        }
        Ok(false)
    }

    /// Takes that for the life of the lease if the look proves it.
    fn prove(&mut self, life: Option<Life>, seen: &Ahead) -> bool {
        let proven = life.and_then(|life| life.proven_by(seen));
        self.kept = proven.or(self.kept);
        proven.is_some()
    }

    /// Whether it is known without another look that the lease lives for as long as we think.
    ///
    /// What a watch has told may be read late. The place can be gone by then, if its lease has run
    /// out: which is not before the end that we count.
    fn is_proven_to_live(&self) -> bool {
        let is_proven = self.kept.is_some_and(|life| life.said_in.is_none());
        // Whose lease nobody may renew soon is told of a full one.
        is_proven && self.has_time_left() && self.request.upkeep != Upkeep::None
    }

    fn has_time_left(&self) -> bool {
        let now = self.service.now();
        self.kept.is_some_and(|life| now < life.since + life.ttl)
    }

    /// Waits until something has changed before the place, or may have.
    async fn until_change(&mut self, place: &InLine, seen: &Ahead) -> Result<Change, Error> {
        let until = match self.request.wait {
            Wait::Until(moment) => moment,
            Wait::Never => self.service.now(),
            Wait::Forever => Moment::NEVER,
        };
        if until <= self.service.now() {
            return Ok(Change::Over);
        }
        let (service, front) = (self.service, Front::new(place, seen));
        let mut told = std::pin::pin!(async {
            match front.change(&service.client).await {
                Ok(change) => change,
                Err(status) => {
                    debug!(%status, "etcd: no watch");
                    service.clock().sleep_until(service.now() + PAUSE).await;
                    Change::Perhaps
                }
            }
        });
        let mut keep_alive = self.next_keep_alive();
        loop {
            tokio::select! {
                biased;
                change = &mut told => return Ok(change),
                () = service.clock().sleep_until(until) => return Ok(Change::Over),
                () = service.clock().sleep_until(keep_alive) => {}
            }
            keep_alive = match self.keep_place(place).await {
                Ok(Looked::Gone) => return Ok(Change::Perhaps),
                // An event may get lost.
                Ok(Looked::Proven(now)) if now.before != seen.before => {
                    return Ok(Change::Seen(now));
                }
                Ok(Looked::Proven(_)) => self.next_keep_alive(),
                Ok(Looked::Unproven) => service.now() + PAUSE,
                Err(error) => {
                    debug!(%error, "etcd: a waiter could not be kept alive");
                    service.now() + PAUSE
                }
            };
        }
    }

    /// Keeps the lease of the place alive, and what is remembered of it, and looks at the line,
    /// which proves it.
    async fn keep_place(&mut self, place: &InLine) -> Result<Looked, Error> {
        let (life, seen) = tokio::join!(self.kept_alive(), self.look(place));
        let (Some(life), Some(seen)) = (life?, seen?) else {
            return Ok(Looked::Gone);
        };
        let ttl = life.ttl;
        if !self.service.remembers(self.memory, &self.names, ttl) {
            let remembered = self.service.remember(&self.names, ttl).await;
            self.memory = remembered.map_err(|failure| self.failed(failure))?;
        }
        if self.prove(Some(life), &seen) {
            Ok(Looked::Proven(seen))
        } else {
            Ok(Looked::Unproven)
        }
    }

    /// Due after a third of what is proven of its lease.
    fn next_keep_alive(&self) -> Moment {
        let due = |life: Life| life.since + life.ttl / 3;
        self.kept.map_or_else(|| self.service.now(), due)
    }

    /// How long its lease is, as far as we know.
    pub(super) fn length(&self) -> Duration {
        self.kept.map_or(self.request.ttl.get(), |life| life.ttl)
    }
}

/// What came of keeping a place.
enum Looked {
    /// Its lease lives, as this look proves.
    Proven(Ahead),
    /// Its lease was kept alive by a leader who perhaps led no more when the line was looked at.
    Unproven,
    /// The place or its lease is gone.
    Gone,
}
