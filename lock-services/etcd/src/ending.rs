use prost::Message;

use super::{
    ENDED_TTL,
    failure::Failure,
    keys::Names,
    leases,
    record::{Kept, Place, State, TOKENS_PER_REVISION, Tombstone},
    service::{Found, Service, TRIES, crowded, insist},
    wire::{Compare, Op, RangeRequest, TxnRequest},
};
use lock_core::{
    AttemptId, AttemptRef, Error, FencingToken, Forced, Released, ResourceName, Sequencer,
};

/// The ways in which a lease ends.
impl Service {
    pub(super) async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        // As with `insist`, of what was refused once the outcome is unknown.
        let failed = |failure: Failure, refused: bool| {
            let error = Error::from(failure);
            if refused {
                error.outcome_unknown()
            } else {
                error
            }
        };
        let names = self.keys.names(lease.resource(), lease.holder());
        let tombstone = Tombstone::released(lease.token()).encode_to_vec();
        let known = self.leases.holding(&names);
        let mut refused = false;
        // This is usually right, and then one request is enough.
        let mut created = self.creation_of(lease.token());
        for _ in 0..TRIES {
            let tombstones = self.tombstone_lease_of_ended().await;
            let tombstones = tombstones.map_err(|failure| failed(failure, refused))?;
            let mut success = vec![
                Op::delete(&names.place),
                Op::put(&names.tombstone, tombstone.clone(), tombstones),
            ];
            if known.is_none() {
                success.insert(0, Op::range(RangeRequest::key(&names.place)));
            }
            let txn = TxnRequest {
                compare: vec![Compare::created(&names.place, created)],
                success,
                failure: Vec::new(),
            };
            let answer = match self.txn(&txn).await {
                Ok(answer) => answer,
                Err(failure) if failure.no_lease() => {
                    self.forget_tombstone_lease();
                    refused = true;
                    continue;
                }
                Err(failure) => return Err(failed(failure, refused)),
            };
            if answer.succeeded {
                let changed = answer.revision();
                let place = answer.ranges().flat_map(|range| range.kvs).next();
                let lease = known.or(place.map(|place| place.lease)).unwrap_or(0);
                self.leases.released(&names, lease, changed, self.now());
                return Ok(Released::Released);
            }
            let found = self.find(&names).await;
            let found = found.map_err(|failure| failed(failure, true))?;
            refused = true;
            match &found.place {
                Some(place) if place.has_token(lease.token()) => created = place.created,
                _ => {
                    // Somebody else has ended it, or a copy of this request has.
                    if let Some(known) = known {
                        self.leases.lose(&names, known, self.now());
                    }
                    return Ok(released_earlier(&found.remembered(), lease, None));
                }
            }
        }
        Err(crowded().outcome_unknown())
    }

    /// The revision that made the place with this token, if the floor was the present one. Never 0,
    /// which would stand for a place that is not there.
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
                .place
                .as_ref()
                .is_some_and(|place| place.has_token(token) && place.value.has(attempt));
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

    /// Ends an attempt, and the lease if no other attempt relies on it. False if something has
    /// changed since it was found.
    async fn end_attempt(
        &self,
        names: &Names,
        found: Found,
        attempt: AttemptId,
        token: u64,
    ) -> Result<bool, Failure> {
        let mut tombstone = found.remembered().ending(attempt, token);
        let tombstones = self.tombstone_lease_of_ended().await?;
        let rest = found
            .place
            .as_ref()
            .map(|place| place.value.clone().without(attempt));
        let goes_on = rest.as_ref().is_some_and(|rest| !rest.attempts.is_empty());
        let mut success = Vec::new();
        match (&rest, &found.place) {
            (Some(rest), Some(place)) if goes_on => {
                success.push(Op::put(&names.place, rest.encode_to_vec(), place.lease));
            }
            (Some(_), _) => {
                success.push(Op::delete(&names.place));
                tombstone = tombstone.in_state(State::Idle);
            }
            (None, _) => {}
        }
        success.push(Op::put(
            &names.tombstone,
            tombstone.encode_to_vec(),
            tombstones,
        ));
        let txn = TxnRequest {
            compare: found.unchanged(names).into(),
            success,
            failure: Vec::new(),
        };
        let answer = match self.txn(&txn).await {
            Ok(answer) if answer.succeeded => answer,
            Ok(_) => return Ok(false),
            Err(failure) if failure.no_lease() => {
                self.forget_tombstone_lease();
                return Ok(false);
            }
            Err(failure) => return Err(failure),
        };
        let (changed, now) = (answer.revision(), self.now());
        let lease = found.place.map(|place| place.lease);
        self.leases.lose_all(names, attempt, lease, now);
        match lease {
            Some(_) if goes_on => self.leases.wrote(names, changed, now + ENDED_TTL),
            Some(lease) => self.place_ended(names, lease, changed),
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

    /// A place was deleted, and its lease is revoked.
    pub(super) fn place_ended(&self, names: &Names, lease: i64, changed: i64) {
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
        let oldest = RangeRequest::oldest(&self.keys.line(resource));
        let read = self.read([oldest]).await?;
        let holder = read.ranges().flat_map(|range| range.kvs).next();
        let Some(holder) = holder else {
            return Ok(Forced::NotHeld);
        };
        let place = Kept::<Place>::read(&holder);
        // Odd, so it is nobody's. It is below the token of the next holder, even one that already
        // waits.
        let revocation = match place.token().filter(|present| *present == token) {
            Some(present) => present.next(),
            None => return Ok(Forced::NotHeld),
        };
        let exhausted = lock_core::ErrorKind::TokensExhausted;
        let revocation = revocation.ok_or_else(|| Error::not_applied(exhausted))?;
        let ended = self.end_place(&holder.key, &place, token).await;
        let Some(tombstone) = ended? else {
            return Ok(Forced::NotHeld);
        };
        // Its own tombstone still says that it is in line, which means that it has ended.
        self.leases.ended(place.lease, tombstone, None, self.now());
        Ok(Forced::Ended { revocation })
    }

    /// Deletes a place by force. Nothing if it was gone, unless this very request deleted it: the
    /// client sends it again if there is no answer, and then finds the tombstone that it left.
    async fn end_place(
        &self,
        key: &[u8],
        place: &Kept<Place>,
        token: FencingToken,
    ) -> Result<Option<leases::Tombstone>, Failure> {
        let id = rand::random();
        let own = self.keys.tombstone(&id);
        let mut tries = 0;
        loop {
            tries += 1;
            let tombstone = Tombstone::released(token).encode_to_vec();
            let tombstones = self.tombstone_lease_of_ended().await?;
            let txn = TxnRequest {
                compare: vec![Compare::created(key, place.created)],
                success: vec![Op::delete(key), Op::put(&own, tombstone, tombstones)],
                failure: vec![Op::range(RangeRequest::key(&own))],
            };
            let answer = match self.txn(&txn).await {
                Ok(answer) => answer,
                Err(failure) if failure.no_lease() && tries < TRIES => {
                    self.forget_tombstone_lease();
                    continue;
                }
                Err(failure) if tries > 1 => return Err(failure.after_another()),
                Err(failure) => return Err(failure),
            };
            let changed = if answer.succeeded {
                Some(answer.revision())
            } else {
                let mut found = answer.ranges().flat_map(|range| range.kvs);
                found.next().map(|own| own.mod_revision)
            };
            return Ok(changed.map(|changed| leases::Tombstone { id, changed }));
        }
    }
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
