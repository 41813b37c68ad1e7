use std::sync::atomic::{AtomicBool, Ordering};

use prost::Message;

use super::{
    ENDED_TTL,
    failure::Failure,
    keys::Names,
    leases,
    record::{Entry, Kept, State, TOKENS_PER_REVISION, Tombstone},
    service::{Found, Service, insist},
    wire::{
        Compare, DeleteRequest, DeleteResponse, Op, RangeRequest, TxnRequest, TxnResponse, method,
    },
};
use lock_core::{
    Error, ErrorKind, FencingToken, Released, ResourceName, Sequencer,
    backend::{AttemptId, AttemptRef, Forced, repeat},
};

/// The ways in which a lease ends.
impl Service {
    pub(super) async fn release(
        &self,
        lease: &Sequencer,
        tombstone: bool,
    ) -> Result<Released, Error> {
        if !tombstone && self.delete_own(lease).await? {
            return Ok(Released::Released);
        }
        self.release_leaving(lease, tombstone).await
    }

    /// Deletes the entry of a holder that only this client knows. Returns false if there is no
    /// entry, or if there may be more to delete.
    ///
    /// Only this client can have made an entry of this name, so nothing has to be compared. A
    /// deletion costs etcd less than a transaction, because etcd copies its latest writes for a
    /// transaction.
    async fn delete_own(&self, lease: &Sequencer) -> Result<bool, Error> {
        let names = self.keys.names(lease.resource(), lease.holder());
        let Some(known) = self.leases.holding(&names) else {
            return Ok(false);
        };
        if self.leases.has_tombstone(&names) {
            return Ok(false);
        }
        let delete = DeleteRequest::key(&names.entry);
        let deleted = self.client.call_counting_copies(method::DELETE, &delete);
        let (answer, was_repeated): (DeleteResponse, bool) = deleted.await?;
        if answer.deleted > 0 {
            self.leases.released(&names, known, None, self.now());
        } else if was_repeated {
            self.leases.lose(&names, known, self.now());
            return Err(copy_lost());
        }
        Ok(answer.deleted > 0)
    }

    async fn release_leaving(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        let (names, token) = (
            self.keys.names(lease.resource(), lease.holder()),
            lease.token(),
        );
        let known = self.leases.holding(&names);
        // This guess is usually right, and then one request is enough.
        let created = self.creation_of(token);
        let tombstone = tombstone.then(|| Tombstone::released(token).encode_to_vec());
        let delete = |created| self.delete_created(&names, created, tombstone.as_deref(), known);
        if delete(created).await? {
            return Ok(Released::Released);
        }
        let again = || async {
            let found = self.find(&names).await?;
            let entry = found.entry.as_ref().filter(|entry| entry.has_token(token));
            if let Some(created) = entry.map(|entry| entry.created) {
                return Ok(delete(created).await?.then_some(Released::Released));
            }
            // Another client has ended the lease, or a copy of this request has.
            if let Some(known) = known {
                self.leases.lose(&names, known, self.now());
            }
            Ok(Some(released_earlier(&found.remembered(), lease, None)))
        };
        // As with `insist`, after a first refusal the outcome is unknown.
        insist(again).await.map_err(Error::outcome_unknown)
    }

    /// Releases the entry that was created by this revision. Returns false if there is no such
    /// entry, or if something has changed.
    async fn delete_created(
        &self,
        names: &Names,
        created: i64,
        tombstone: Option<&[u8]>,
        known: Option<i64>,
    ) -> Result<bool, Error> {
        let mut success = vec![Op::delete(&names.entry)];
        // The tombstone that was there since the entry was made.
        if tombstone.is_none() && self.leases.has_tombstone(names) {
            success.push(Op::delete(&names.tombstone));
        }
        if known.is_none() {
            success.insert(0, Op::range(RangeRequest::key(&names.entry)));
        }
        let txn = TxnRequest {
            compare: vec![Compare::created(&names.entry, created)],
            success,
            failure: Vec::new(),
        };
        let answer = match tombstone {
            Some(text) => self.end(txn, &names.tombstone, text.to_vec()).await?,
            None => Some(self.change(&txn).await?.into()),
        };
        let Some(answer) = answer else {
            return Ok(false);
        };
        if !answer.txn.succeeded {
            return match answer.was_repeated && tombstone.is_none() {
                true => Err(copy_lost()),
                false => Ok(false),
            };
        }
        let entry = answer.txn.ranges().flat_map(|range| range.kvs).next();
        let lease = known.or(entry.map(|entry| entry.lease)).unwrap_or(0);
        if tombstone.is_some() && answer.buried.is_none() {
            self.entry_ended(names, lease, self.leases.tombstone(names).changed);
        } else {
            self.leases
                .released(names, lease, answer.buried, self.now());
        }
        Ok(true)
    }

    /// The revision that made the entry with this token, if the floor has not changed since. Never
    /// 0, because 0 would stand for an entry that is not there.
    fn creation_of(&self, token: FencingToken) -> i64 {
        let floor = self.floor().map_or(0, |floor| floor.value);
        let above = token.get().saturating_sub(floor);
        let created = if above.is_multiple_of(TOKENS_PER_REVISION) {
            above / TOKENS_PER_REVISION
        } else {
            0
        };
        i64::try_from(std::cmp::max(created, 1)).unwrap_or(i64::MAX)
    }

    pub(super) async fn release_hold(
        &self,
        lease: &Sequencer,
        attempt: AttemptId,
    ) -> Result<Released, Error> {
        let names = self.keys.names(lease.resource(), lease.holder());
        let token = lease.token();
        let give_back = || async {
            let found = self.find(&names).await?;
            let held = found
                .entry
                .as_ref()
                .is_some_and(|entry| entry.has_token(token) && entry.value.has(attempt));
            if !held {
                let remembered = found.remembered();
                return Ok(Some(released_earlier(&remembered, lease, Some(attempt))));
            }
            let ended = self.end_attempt(&names, found, attempt, token.get()).await;
            Ok(ended?.then_some(Released::Released))
        };
        insist(give_back).await
    }

    pub(super) async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let names = self.keys.names(&attempt.resource, attempt.holder);
        let end = || async {
            let found = self.find(&names).await?;
            let ended = self.end_attempt(&names, found, attempt.id, 0).await;
            Ok(ended?.then_some(()))
        };
        insist(end).await
    }

    /// Ends an attempt, and its lease if no other attempt relies on the lease. Returns false if
    /// something has changed since it was found.
    async fn end_attempt(
        &self,
        names: &Names,
        found: Found,
        attempt: AttemptId,
        token: u64,
    ) -> Result<bool, Failure> {
        let mut tombstone = found.remembered().ending(attempt, token);
        let rest = found
            .entry
            .as_ref()
            .map(|entry| entry.value.clone().without(attempt));
        let goes_on = rest.as_ref().is_some_and(|rest| !rest.attempts.is_empty());
        let mut success = Vec::new();
        match (&rest, &found.entry) {
            (Some(rest), Some(entry)) if goes_on => {
                success.push(Op::put(&names.entry, rest.encode_to_vec(), entry.lease));
            }
            (Some(_), _) => {
                success.push(Op::delete(&names.entry));
                tombstone = tombstone.in_state(State::Idle);
            }
            (None, _) => {}
        }
        let txn = TxnRequest {
            compare: found.unchanged(names).into(),
            success,
            failure: Vec::new(),
        };
        let ended = self.end(txn, &names.tombstone, tombstone.encode_to_vec());
        let (answer, now) = (ended.await, self.now());
        let answer = match answer {
            // No entry is left, and a late request for an entry is refused, because its lease is
            // revoked.
            Err(failure)
                if failure.no_space()
                    && found.entry.is_none()
                    && self.leases.has_taken(names, attempt) =>
            {
                self.leases.lose_all(names, attempt, None, now);
                return Ok(true);
            }
            answer => answer?.filter(|answer| answer.txn.succeeded),
        };
        let Some(answer) = answer else {
            return Ok(false);
        };
        let earlier = found.tombstone.map_or(0, |tombstone| tombstone.changed);
        let changed = answer.buried.unwrap_or(earlier);
        let lease = found.entry.map(|entry| entry.lease);
        self.leases.lose_all(names, attempt, lease, now);
        match lease {
            Some(_) if goes_on => self.leases.wrote(names, changed, now + ENDED_TTL),
            Some(lease) => self.entry_ended(names, lease, changed),
            None => self.leases.buried(
                leases::Tombstone {
                    id: names.id,
                    changed,
                },
                now,
            ),
        }
        Ok(true)
    }

    /// Carries out a transaction that ends a lease or an attempt, and writes a tombstone in the
    /// same step. `None` if the lease of tombstones does not exist any more. The next call asks for
    /// another one.
    ///
    /// etcd without space deletes, but writes nothing. Then an entry is deleted without a
    /// tombstone, and its lease has to be revoked, so that a late request for the entry is refused.
    async fn end(
        &self,
        txn: TxnRequest,
        key: &[u8],
        tombstone: Vec<u8>,
    ) -> Result<Option<Answer>, Failure> {
        let buried = async {
            let lease = self.tombstone_lease_of_ended().await?;
            let mut txn = txn.clone();
            txn.success.push(Op::put(key, tombstone, lease));
            self.bury(&txn).await
        };
        match buried.await {
            Err(failure) if failure.no_space() && txn.success.iter().any(Op::is_delete) => {
                Ok(Some(self.change(&txn).await?.into()))
            }
            answered => Ok(answered?.map(|txn| Answer {
                buried: Some(txn.revision()),
                was_repeated: false,
                txn,
            })),
        }
    }

    /// Notes that an entry was deleted. Its lease is then revoked.
    pub(super) fn entry_ended(&self, names: &Names, lease: i64, changed: i64) {
        let tombstone = leases::Tombstone {
            id: names.id,
            changed,
        };
        self.leases.ended(lease, tombstone, Some(names), self.now());
    }

    pub(super) async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let queue = self.keys.queue(resource);
        let read = repeat(self.runtime(), || async {
            Ok(self.read([RangeRequest::oldest(&queue)]).await?)
        });
        let read = read.await?;
        let holder = read.ranges().flat_map(|range| range.kvs).next();
        let Some(holder) = holder else {
            return Ok(Forced::NotHeld);
        };
        let entry = Kept::<Entry>::read(&holder);
        // The token of no holder, because tokens of holders differ by at least two. It is below the
        // token of the next holder, even of a holder that already waits.
        let revocation = match entry.token().filter(|present| *present == token) {
            Some(present) => present.next(),
            None => return Ok(Forced::NotHeld),
        };
        let exhausted = ErrorKind::TokensExhausted;
        let revocation = revocation.ok_or_else(|| Error::not_applied(exhausted))?;
        let ended = self.end_entry(&holder.key, &entry, token).await;
        let Some(tombstone) = ended? else {
            return Ok(Forced::NotHeld);
        };
        // The holder's own tombstone still says that there is an entry. Without an entry this means
        // that the acquisition has ended.
        self.leases.ended(entry.lease, tombstone, None, self.now());
        Ok(Forced::Ended { revocation })
    }

    /// Deletes an entry by force, and returns the tombstone. `None` if the entry was gone, unless a
    /// copy of this same request deleted it. The request is sent again if there is no answer, and
    /// the second copy finds the tombstone of the first.
    async fn end_entry(
        &self,
        key: &[u8],
        entry: &Kept<Entry>,
        token: FencingToken,
    ) -> Result<Option<leases::Tombstone>, Error> {
        let id = self.runtime().random().to_be_bytes();
        let own = self.keys.tombstone(&id);
        let is_unanswered = AtomicBool::new(false);
        let end = || async {
            let tombstone = Tombstone::released(token).encode_to_vec();
            let txn = TxnRequest {
                compare: vec![Compare::created(key, entry.created)],
                success: vec![Op::delete(key)],
                failure: vec![Op::range(RangeRequest::key(&own))],
            };
            let answer = match self.end(txn, &own, tombstone).await {
                Ok(Some(answer)) => answer,
                Ok(None) => return Ok(None),
                Err(failure) => {
                    is_unanswered.fetch_or(failure.was_sent(), Ordering::Relaxed);
                    return Err(failure.into());
                }
            };
            let has_ended = answer.txn.succeeded;
            let found = answer.txn.ranges().flat_map(|range| range.kvs).next();
            let was_repeated = answer.was_repeated || is_unanswered.load(Ordering::Relaxed);
            let changed = match (found, answer.buried) {
                _ if has_ended => Some(answer.buried.unwrap_or(0)),
                (Some(own), _) => Some(own.mod_revision),
                // The first copy has deleted the entry, and could write no tombstone.
                (None, None) if was_repeated => Some(0),
                (None, _) => None,
            };
            let tombstone = changed.map(|changed| leases::Tombstone { id, changed });
            Ok(Some(tombstone))
        };
        repeat(self.runtime(), || insist(&end)).await
    }
}

/// The result of a transaction that ends something.
struct Answer {
    txn: TxnResponse,
    /// The revision by which a tombstone was written, if one was written.
    buried: Option<i64>,
    /// If no tombstone was written: whether the transaction was sent more than once.
    was_repeated: bool,
}

/// The answer to a transaction that wrote no tombstone.
impl From<(TxnResponse, bool)> for Answer {
    fn from((txn, was_repeated): (TxnResponse, bool)) -> Self {
        Self {
            txn,
            buried: None,
            was_repeated,
        }
    }
}

/// The error if an earlier copy of the request may have ended the lease, and nothing remembers
/// that. The next answer to the same request says that the lease has ended.
fn copy_lost() -> Error {
    let why = "a copy of the request had no answer, and the lease has ended";
    Error::unknown(ErrorKind::Unavailable).because(why)
}

fn released_earlier(
    remembered: &Tombstone,
    lease: &Sequencer,
    attempt: Option<AttemptId>,
) -> Released {
    let token = lease.token().get();
    let released = remembered.state_is(State::Released) && remembered.token == token;
    if released || attempt.and_then(|attempt| remembered.end_of(attempt)) == Some(token) {
        return Released::Released;
    }
    Released::NotHolder
}
