use std::time::Duration;

use prost::Message;

use super::{
    acquisition::{Acquisition, with_place},
    grant::Granted,
    in_line::{Ahead, InLine, Life},
    leases::slack,
    record::{Floor, Place, State, Tombstone},
    service::Found,
    wire::{Compare, KeyValue, Op, RangeRequest, TxnRequest, TxnResponse},
};
use lock_core::{Error, ErrorKind, Wait};

/// What came of asking for a place in line.
pub(super) enum Entered {
    /// It has a place, and these are before it.
    InLine(InLine, Ahead),
    /// Somebody holds the resource, and this acquisition does not wait.
    Held,
    /// Something was not as we thought. Now we know better.
    Again,
}

impl Acquisition<'_> {
    /// Takes a place in line, or finds the one that it already has.
    pub(super) async fn enter(&mut self) -> Result<Entered, Error> {
        let floor = self.service.known_floor().await?;
        let (lease, tombstones) = self.prepare().await?;
        let txn = self.entry(floor, lease, tombstones);
        let asked = self.service.now();
        let (answer, was_repeated) = match self.service.change(&txn).await {
            Ok(answered) => answered,
            Err(failure) if failure.no_lease() => {
                self.lose_lease();
                self.service.forget_leases();
                return Ok(Entered::Again);
            }
            Err(failure) => return Err(failure.into()),
        };
        if !answer.succeeded {
            return self.refused(answer, was_repeated).await;
        }
        let (created, term) = (answer.revision(), answer.term());
        let (names, leases) = (&self.names, &self.service.leases);
        leases.entered(names, lease, created, self.kept);
        let ahead = answer.ranges().next().unwrap_or_default();
        let last = ahead
            .kvs
            .into_iter()
            .find(|entry| entry.create_revision < created);
        let place = InLine {
            created,
            floor: floor.value,
        };
        let ahead = Ahead {
            number: ahead.count - 1,
            last: last.map(|entry| entry.key),
            least: self.least(),
            asked,
            revision: created,
            term,
        };
        Ok(Entered::InLine(place, ahead))
    }

    /// The leases that a new place needs: one that lives for as long as was asked for from now on,
    /// and the one for the tombstone.
    async fn prepare(&mut self) -> Result<(i64, i64), Error> {
        let ttl = self.request.ttl.get();
        let lease = loop {
            let lease = self.lease(ttl).await?;
            let until = self.service.now() + ttl;
            let lasts = self.kept.is_some_and(|life| life.end() >= until);
            if lasts || self.keep_alive().await? {
                break lease;
            }
            self.lose_lease();
        };
        let tombstones = self.service.tombstone_lease(self.length()).await;
        Ok((lease, tombstones?))
    }

    /// The lease that it has, or takes, which may have ended.
    async fn lease(&mut self, ttl: Duration) -> Result<i64, Error> {
        if let Some(lease) = self.lease {
            return Ok(lease);
        }
        let (service, attempt) = (self.service, self.request.attempt.id);
        let taken = service
            .leases
            .take(&self.names, attempt, ttl, service.now());
        (self.lease, self.on, self.kept) = (Some(taken.id), taken.id, taken.life);
        if taken.is_new {
            let granted = service.grant(taken.id, ttl + slack(ttl)).await;
            if let Granted::New { asked, ttl } = granted? {
                self.kept = Some(Life {
                    since: asked,
                    ttl,
                    length: ttl,
                    said_in: None,
                });
            }
        }
        Ok(taken.id)
    }

    /// The request that makes a place in line, in one step, if nobody has cancelled it, it has none
    /// yet, and the floor that is written into it is the present one.
    fn entry(&self, floor: Floor, lease: i64, tombstones: i64) -> TxnRequest {
        let (attempt, names) = (&self.request.attempt, &self.names);
        let (key, floor_key) = (&names.place, self.service.keys.floor());
        let (remembered, changed) = match &self.tombstone {
            Some(tombstone) => (tombstone.value.clone(), tombstone.changed),
            None => (Tombstone::default(), 0),
        };
        let tombstone = remembered.in_state(State::InLine);
        let note = self.request.metadata.as_ref();
        let place = Place::new(attempt.holder, attempt.id, note).counted(floor.value, self.least());
        let free = match self.request.wait {
            Wait::Never => Compare::none(&names.line),
            Wait::Until(_) | Wait::Forever => Compare::created(key, 0),
        };
        TxnRequest {
            compare: vec![
                free,
                Compare::changed(&names.tombstone, changed),
                Compare::changed(&floor_key, floor.changed),
            ],
            success: vec![
                Op::put(key, place.encode_to_vec(), lease),
                Op::put(&names.tombstone, tombstone.encode_to_vec(), tombstones),
                Op::range(RangeRequest::youngest(&names.line, 2).without_values()),
            ],
            // Whoever waits is hardly ever refused, and asks then.
            failure: match self.request.wait {
                Wait::Never => self.present().map(Op::range).into(),
                Wait::Until(_) | Wait::Forever => Vec::new(),
            },
        }
    }

    /// What there may be in the way of a new place.
    fn present(&self) -> [RangeRequest; 4] {
        let names = &self.names;
        [
            RangeRequest::key(&names.place),
            RangeRequest::key(&names.tombstone),
            RangeRequest::key(&self.service.keys.floor()),
            RangeRequest::oldest(&names.line),
        ]
    }

    /// Finds out why there is no new place.
    async fn refused(&mut self, answer: TxnResponse, was_repeated: bool) -> Result<Entered, Error> {
        let attempt = &self.request.attempt;
        let answer = match self.request.wait {
            Wait::Never => answer,
            Wait::Until(_) | Wait::Forever => {
                let present = self.service.read(self.present()).await;
                present.map_err(|failure| with_place(failure.into()))?
            }
        };
        let mut ranges = answer.ranges();
        let found = Found::read(&mut ranges);
        let mut first = || ranges.next().and_then(|range| range.kvs.into_iter().next());
        let (floor, holder) = (first(), first());
        let remembered = found.remembered();
        if let Some(place) = &found.place {
            self.stand_on(place.lease, was_repeated);
        } else if !remembered.state_is(State::Idle) {
            return Err(Error::not_applied(ErrorKind::Released));
        }
        if remembered.end_of(attempt.id).is_some() {
            return Err(Error::not_applied(ErrorKind::Released));
        }
        if found.place.is_some() {
            return self.join(found, holder.as_ref()).await;
        }
        self.service.note_floor(floor.as_ref())?;
        self.tombstone = found.tombstone;
        if holder.is_some() && self.request.wait == Wait::Never {
            self.give_lease_back(was_repeated);
            return Ok(Entered::Held);
        }
        Ok(Entered::Again)
    }

    /// There is a place already, on that lease, which is not this attempt's own any more: other
    /// attempts may rely on it.
    fn stand_on(&mut self, lease: i64, was_repeated: bool) {
        if self.lease == Some(lease) {
            self.lease = None;
        } else {
            self.give_lease_back(was_repeated);
            self.kept = None;
        }
        self.on = lease;
    }

    /// The lease that it has taken was not used. If its entry was sent twice, the other copy of it
    /// may still come in.
    fn give_lease_back(&mut self, was_repeated: bool) {
        if was_repeated {
            self.lose_lease();
        } else if let Some(lease) = self.lease.take() {
            let service = self.service;
            let (now, life) = (service.now(), self.kept);
            service.leases.unused(&self.names, lease, life, now);
        }
    }

    /// Relies on the place that an earlier attempt has made. As long as another entry is the oldest
    /// of the line, nobody was told of this place.
    async fn join(&mut self, found: Found, oldest: Option<&KeyValue>) -> Result<Entered, Error> {
        let attempt = &self.request.attempt;
        let Some(place) = &found.place else {
            return Ok(Entered::Again);
        };
        if !place.value.has(attempt.id) {
            let mut joined = place.value.clone();
            joined.attempts.push(attempt.id.to_string());
            let mut compare = found.unchanged(&self.names).to_vec();
            let before = oldest.filter(|oldest| oldest.create_revision < place.created);
            if let Some(before) = before.filter(|_| self.least() > joined.least) {
                joined.least = self.least();
                compare.push(Compare::created(&before.key, before.create_revision));
            }
            let txn = TxnRequest {
                compare,
                success: vec![Op::put(
                    &self.names.place,
                    joined.encode_to_vec(),
                    place.lease,
                )],
                failure: Vec::new(),
            };
            let answer = self.service.txn(&txn).await;
            if !answer?.succeeded {
                return Ok(Entered::Again);
            }
        }
        if self.kept.is_none() && !self.time_left().await.map_err(with_place)? {
            return Ok(Entered::Again);
        }
        let place = InLine {
            created: place.created,
            floor: place.value.floor,
        };
        // One more than it allows is one too many.
        let number = self
            .request
            .max_waiters
            .map_or(1, |most| i64::from(most) + 1);
        let ahead = self.look(&place, number).await.map_err(with_place)?;
        Ok(ahead.map_or(Entered::Again, |ahead| Entered::InLine(place, ahead)))
    }
}
