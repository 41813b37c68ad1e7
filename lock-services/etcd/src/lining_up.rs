use prost::Message;

use super::{
    acquisition::{Acquisition, with_place},
    grant::Granted,
    in_line::{Ahead, InLine, Life},
    record::{Floor, Mark, Place, State},
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
        let lease = self.names.lease(self.round);
        self.prepare(lease).await?;
        let txn = self.entry(floor, lease);
        let asked = self.service.now();
        let answer = match self.service.txn(&txn).await {
            Ok(answer) => answer,
            Err(failure) if failure.no_lease() => {
                self.kept = None;
                self.service.forget_memories();
                return Ok(Entered::Again);
            }
            Err(failure) => return Err(self.failed(failure)),
        };
        if !answer.succeeded {
            return self.refused(answer, lease).await;
        }
        if self.kept.is_none() && !self.keep_alive().await.map_err(with_place)? {
            // The lease was granted to an earlier request whose answer was lost, and has ended.
            return Ok(Entered::Again);
        }
        let (created, term) = (answer.revision(), answer.term());
        let ahead = answer.ranges().next().unwrap_or_default();
        let last = ahead
            .kvs
            .into_iter()
            .find(|entry| entry.create_revision < created);
        let place = InLine {
            key: self.names.place(lease),
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

    /// Asks for the leases that a new place needs.
    async fn prepare(&mut self, lease: i64) -> Result<(), Error> {
        let ttl = self.request.ttl.get();
        if self.kept.is_none() {
            let granted = self.service.grant(lease, ttl).await;
            if let Granted::New { asked, ttl } = granted.map_err(|failure| self.failed(failure))? {
                self.kept = Some(Life {
                    since: asked,
                    ttl,
                    said_in: None,
                });
            }
        }
        let memory = self.service.memory(ttl).await;
        self.memory = memory.map_err(|failure| self.failed(failure))?;
        Ok(())
    }

    /// The request that makes a place in line, in one step, if nobody has cancelled it, it has none
    /// yet, and the floor that is written into it is the present one.
    fn entry(&self, floor: Floor, lease: i64) -> TxnRequest {
        let (attempt, names) = (&self.request.attempt, &self.names);
        let (key, floor_key) = (names.place(lease), self.service.keys.floor());
        let (remembered, changed) = match &self.mark {
            Some(mark) => (mark.value.clone(), mark.changed),
            None => (Mark::default(), 0),
        };
        let mark = remembered.in_state(State::InLine);
        let note = self.request.metadata.as_ref();
        let place = Place::new(attempt.holder, attempt.id, note).counted(floor.value, self.least());
        let free = match self.request.wait {
            Wait::Never => Compare::none(&names.line),
            Wait::Until(_) | Wait::Forever => Compare::created(&key, 0),
        };
        TxnRequest {
            compare: vec![
                free,
                Compare::changed(&names.mark, changed),
                Compare::changed(&floor_key, floor.changed),
            ],
            success: vec![
                Op::put(&key, place.encode_to_vec(), lease),
                Op::put(&names.mark, mark.encode_to_vec(), self.memory),
                Op::range(RangeRequest::youngest(&names.line, 2)),
            ],
            failure: vec![
                Op::range(RangeRequest::key(&key)),
                Op::range(RangeRequest::key(&names.mark)),
                Op::range(RangeRequest::key(&floor_key)),
                Op::range(RangeRequest::oldest(&names.line)),
            ],
        }
    }

    /// Finds out why there is no new place.
    async fn refused(&mut self, answer: TxnResponse, lease: i64) -> Result<Entered, Error> {
        let attempt = &self.request.attempt;
        let mut ranges = answer.ranges();
        let mut found = Found::read(self.names.place(lease), self.round, &mut ranges);
        let mut first = || ranges.next().and_then(|range| range.kvs.into_iter().next());
        let (floor, holder) = (first(), first());
        let mut unused = Some(lease);
        if found.memory().round != self.round {
            // This acquisition has other names by now. The lease is nobody's.
            self.service.revoker.revoke(lease);
            (unused, self.kept) = (None, None);
            let present = self.service.find(&self.names).await;
            found = present.map_err(|failure| with_place(self.failed(failure)))?;
            self.round = found.round;
        }
        let memory = found.memory();
        if found.place.is_none() && !memory.state_is(State::Idle) {
            return Err(self.ended(unused));
        }
        if memory.end_of(attempt.id).is_some() {
            return Err(self.ended(None));
        }
        if found.place.is_some() {
            return self.join(found, holder.as_ref()).await;
        }
        self.service
            .note_floor(floor.as_ref())
            .map_err(|error| error.on(&attempt.resource))?;
        self.mark = found.mark;
        // The lease is left to end by itself. The next attempt of this holder asks for one with the
        // same number, and if this one were ended late, that one would end, too.
        if holder.is_some() && self.request.wait == Wait::Never {
            return Ok(Entered::Held);
        }
        Ok(Entered::Again)
    }

    /// Relies on the place that an earlier attempt has made. As long as another entry is the oldest
    /// of the line, nobody was told of this place.
    async fn join(&mut self, found: Found, oldest: Option<&KeyValue>) -> Result<Entered, Error> {
        let attempt = &self.request.attempt;
        let Some(place) = found.place_of(attempt.holder) else {
            return Err(self
                .error(ErrorKind::Refused)
                .because("another holder has its lease"));
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
                success: vec![Op::put(&found.key, joined.encode_to_vec(), place.lease)],
                failure: Vec::new(),
            };
            let answer = self.service.txn(&txn).await;
            if !answer.map_err(|failure| self.failed(failure))?.succeeded {
                return Ok(Entered::Again);
            }
        }
        if self.kept.is_none() && !self.time_left().await.map_err(with_place)? {
            return Ok(Entered::Again);
        }
        self.memory = found.mark.as_ref().map_or(self.memory, |mark| mark.lease);
        let place = InLine {
            created: place.created,
            floor: place.value.floor,
            key: found.key,
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
