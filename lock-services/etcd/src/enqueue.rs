use std::{mem, time::Duration};

use prost::Message;

use super::{
    attempt::{Attempt, may_be_queued},
    grant::grant,
    leases::slack,
    queued::{Ahead, Queued},
    record::{Entry, Floor, State, Tombstone},
    service::Found,
    wire::{Compare, KeyValue, Op, RangeRequest, TxnRequest, TxnResponse},
};
use lock_core::{Error, ErrorKind, backend::Upkeep};

/// The result of asking for a queue entry.
pub(super) enum Enqueued {
    /// The attempt has an entry, and this is known of the entries before it.
    Queued(Queued, Ahead),
    /// Another holder has the resource, and this attempt does not queue.
    Held,
    /// The state was not as this client expected. The client has learned the present state and can
    /// try again.
    Retry,
}

impl Attempt<'_> {
    /// Takes a queue entry, or finds the entry that the attempt already has. Without `queue` it
    /// takes an entry only if there is no other entry.
    pub(super) async fn enqueue(&mut self, queue: bool) -> Result<Enqueued, Error> {
        let floor = self.service.known_floor().await?;
        let (lease, tombstones) = self.prepare().await?;
        let txn = self.entry_request(floor, lease, tombstones, queue);
        let asked = self.service.now();
        // If this future is dropped before the answer, the request may arrive later.
        let copied = mem::replace(&mut self.copied, true);
        let answer = self.service.change(&txn).await;
        self.copied = copied
            || match &answer {
                Ok((_, was_repeated)) => *was_repeated,
                Err(failure) => failure.was_sent(),
            };
        let answer = match answer {
            Ok((answer, _)) => answer,
            Err(failure) if failure.no_lease() => {
                self.lose_lease();
                self.service.forget_leases();
                return Ok(Enqueued::Retry);
            }
            Err(failure) => return Err(failure.into()),
        };
        if !answer.succeeded {
            return self.refused(answer, queue).await;
        }
        let (created, term) = (answer.revision(), answer.term());
        let (names, leases) = (&self.names, &self.service.leases);
        let changed = if tombstones.is_some() { created } else { 0 };
        leases.entered(names, lease, changed, self.kept);
        let ahead = answer.ranges().next().unwrap_or_default();
        let last = ahead
            .kvs
            .into_iter()
            .find(|kv| kv.create_revision < created);
        let entry = Queued {
            created,
            floor: floor.value,
        };
        let ahead = Ahead {
            number: ahead.count - 1,
            last: last.map(|kv| kv.key),
            least: self.least(),
            asked,
            revision: created,
            term,
        };
        Ok(Enqueued::Queued(entry, ahead))
    }

    /// The leases that a new entry needs: a lease that lives for the requested ttl from now on, and
    /// the lease for the tombstone, if the attempt leaves a tombstone.
    async fn prepare(&mut self) -> Result<(i64, Option<i64>), Error> {
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
        let tombstones = match self.leaves_tombstone() {
            true => Some(self.service.tombstone_lease(self.length()).await?),
            false => None,
        };
        Ok((lease, tombstones))
    }

    /// Whether a tombstone has to say that there was an entry: if another process may know the
    /// acquisition and ask again, or if there is already something to remember.
    ///
    /// If only this client knows the acquisition, only late copies of the request for the entry may
    /// come. While the entry is there, it makes etcd refuse them. After a release there is a
    /// tombstone if a copy may arrive. After any other end the lease is not used again, so etcd
    /// refuses a copy with that lease.
    pub(super) const fn leaves_tombstone(&self) -> bool {
        matches!(self.request.upkeep, Upkeep::None) || self.tombstone.is_some()
    }

    /// The lease that the attempt has, or takes now. It may have ended.
    async fn lease(&mut self, ttl: Duration) -> Result<i64, Error> {
        if let Some(lease) = self.lease {
            return Ok(lease);
        }
        let (service, attempt) = (self.service, self.request.attempt.id);
        let taken = service
            .leases
            .take(&self.names, attempt, ttl, service.runtime());
        (self.lease, self.on, self.kept) = (Some(taken.id), taken.id, taken.life);
        if taken.is_new {
            self.kept = grant(&service.client, taken.id, ttl + slack(ttl)).await?;
        }
        Ok(taken.id)
    }

    /// The request that makes a queue entry. In the same step it checks that the attempt was not
    /// cancelled, that there is no entry yet, and that the floor in the entry is the present floor.
    fn entry_request(
        &self,
        floor: Floor,
        lease: i64,
        tombstones: Option<i64>,
        queue: bool,
    ) -> TxnRequest {
        let (attempt, names) = (&self.request.attempt, &self.names);
        let (key, floor_key) = (&names.entry, self.service.keys.floor());
        let (remembered, changed) = match &self.tombstone {
            Some(tombstone) => (tombstone.value.clone(), tombstone.changed),
            None => (Tombstone::default(), 0),
        };
        let tombstone = remembered.in_state(State::Queued);
        let note = self.request.metadata.as_ref();
        let entry = Entry::new(attempt.holder, attempt.id, note).counted(floor.value, self.least());
        let free = match queue {
            false => Compare::none(&names.queue),
            true => Compare::created(key, 0),
        };
        let remember =
            tombstones.map(|on| Op::put(&names.tombstone, tombstone.encode_to_vec(), on));
        let ahead = RangeRequest::youngest(&names.queue, 2).without_values();
        let mut success = vec![Op::put(key, entry.encode_to_vec(), lease)];
        success.extend(remember);
        success.push(Op::range(ahead));
        TxnRequest {
            compare: vec![
                free,
                Compare::changed(&names.tombstone, changed),
                Compare::changed(&floor_key, floor.changed),
            ],
            success,
            // An attempt that queues is hardly ever refused, and reads these keys only then.
            failure: match queue {
                false => self.present().map(Op::range).into(),
                true => Vec::new(),
            },
        }
    }

    /// The keys that may be in the way of a new entry.
    fn present(&self) -> [RangeRequest; 4] {
        let names = &self.names;
        [
            RangeRequest::key(&names.entry),
            RangeRequest::key(&names.tombstone),
            RangeRequest::key(&self.service.keys.floor()),
            RangeRequest::oldest(&names.queue),
        ]
    }

    /// Finds out why there is no new entry.
    async fn refused(&mut self, answer: TxnResponse, queue: bool) -> Result<Enqueued, Error> {
        let attempt = &self.request.attempt;
        let answer = match queue {
            false => answer,
            true => {
                let present = self.service.read(self.present()).await;
                present.map_err(|failure| may_be_queued(failure.into()))?
            }
        };
        let mut ranges = answer.ranges();
        let found = Found::read(&mut ranges);
        let mut first = || ranges.next().and_then(|range| range.kvs.into_iter().next());
        let (floor, holder) = (first(), first());
        let remembered = found.remembered();
        if let Some(entry) = &found.entry {
            self.rely_on(entry.lease);
        } else if !remembered.state_is(State::Idle) {
            return Err(Error::not_applied(ErrorKind::Released));
        }
        if remembered.end_of(attempt.id).is_some() {
            return Err(Error::not_applied(ErrorKind::Released));
        }
        if found.entry.is_some() {
            return self.join(found, holder.as_ref()).await;
        }
        self.service.note_floor(floor.as_ref())?;
        self.tombstone = found.tombstone;
        if holder.is_some() && !queue {
            self.give_lease_back();
            return Ok(Enqueued::Held);
        }
        Ok(Enqueued::Retry)
    }

    /// Notes that there is already an entry on this lease. The lease does not belong to this
    /// attempt alone any more, because other attempts may rely on it.
    fn rely_on(&mut self, lease: i64) {
        if self.lease == Some(lease) {
            self.lease = None;
        } else {
            self.give_lease_back();
            self.kept = None;
        }
        self.on = lease;
    }

    /// Gives back the lease that the attempt has taken, because no entry uses it. A copy of the
    /// request for the entry may still arrive.
    fn give_lease_back(&mut self) {
        if self.copied {
            self.lose_lease();
        } else if let Some(lease) = self.lease.take() {
            let service = self.service;
            let (now, life) = (service.now(), self.kept);
            service.leases.unused(&self.names, lease, life, now);
        }
    }

    /// Relies on the entry that an earlier attempt has made. As long as another entry is the oldest
    /// of the queue, no caller knows of this entry.
    async fn join(&mut self, found: Found, oldest: Option<&KeyValue>) -> Result<Enqueued, Error> {
        let attempt = &self.request.attempt;
        let Some(entry) = &found.entry else {
            return Ok(Enqueued::Retry);
        };
        if !entry.value.has(attempt.id) {
            let mut joined = entry.value.clone();
            joined.attempts.push(attempt.id.to_string());
            let mut compare = found.unchanged(&self.names).to_vec();
            let before = oldest.filter(|oldest| oldest.create_revision < entry.created);
            if let Some(before) = before.filter(|_| self.least() > joined.least) {
                joined.least = self.least();
                compare.push(Compare::created(&before.key, before.create_revision));
            }
            let txn = TxnRequest {
                compare,
                success: vec![Op::put(
                    &self.names.entry,
                    joined.encode_to_vec(),
                    entry.lease,
                )],
                failure: Vec::new(),
            };
            let answer = self.service.txn(&txn).await;
            if !answer?.succeeded {
                return Ok(Enqueued::Retry);
            }
        }
        if self.kept.is_none() && !self.time_left().await.map_err(may_be_queued)? {
            return Ok(Enqueued::Retry);
        }
        let entry = Queued {
            created: entry.created,
            floor: entry.value.floor,
        };
        // The look counts up to one more than the attempt allows, so that it can see that there are
        // too many.
        let number = self
            .request
            .max_waiters
            .map_or(1, |most| i64::from(most) + 1);
        let ahead = self.look(&entry, number).await.map_err(may_be_queued)?;
        Ok(ahead.map_or(Enqueued::Retry, |ahead| Enqueued::Queued(entry, ahead)))
    }
}
