use prost::Message;

use super::{
    failure::Failure,
    keys::Names,
    record::{Kept, Mark, Place, State, TOKENS_PER_REVISION},
    service::{Found, Service, TRIES, crowded, insist},
    wire::{Compare, Op, RangeRequest, TxnRequest},
};
use lock_core::{
    AttemptId, AttemptRef, Error, FencingToken, Forced, Operation, Released, ResourceName,
    Sequencer,
};

/// The ways in which a lease ends.
impl Service {
    pub(super) async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        // As with `insist`, of what was refused once the outcome is unknown.
        let failed = |failure: Failure, refused: bool| {
            let error = failure.error_on(Operation::Release, lease.resource());
            if refused {
                error.outcome_unknown()
            } else {
                error
            }
        };
        let names = self.keys.names(lease.resource(), lease.holder());
        let (mut round, mut refused) = (0, false);
        // This is usually right, and then one request is enough.
        let mut created = self.creation_of(lease.token());
        for _ in 0..TRIES {
            let number = names.lease(round);
            let key = names.place(number);
            let mark = Mark::released(round, lease.token());
            let memory = self.memory_of_ended().await;
            let memory = memory.map_err(|failure| failed(failure, refused))?;
            let mut success = vec![
                Op::delete(&key),
                Op::put(&names.mark, mark.encode_to_vec(), memory),
            ];
            let release = self.successors.release(&names.line);
            if release.is_some() {
                success.push(Op::range(RangeRequest::oldest(&names.line)));
            }
            let txn = TxnRequest {
                compare: vec![Compare::created(&key, created)],
                success,
                failure: vec![
                    Op::range(RangeRequest::key(&key)),
                    Op::range(RangeRequest::key(&names.mark)),
                ],
            };
            let asked = self.now();
            let answer = match self.txn(&txn).await {
                Ok(answer) => answer,
                Err(failure) if failure.no_lease() => {
                    self.forget_memories();
                    refused = true;
                    continue;
                }
                Err(failure) => return Err(failed(failure, refused)),
            };
            if answer.succeeded {
                self.successors.tell_next(&names.line, asked, answer);
                self.revoker.revoke(number);
                return Ok(Released::Released);
            }
            refused = true;
            let mut found = Found::read(key, round, &mut answer.ranges());
            if found.memory().round != round {
                let present = self.find(&names).await;
                found = present.map_err(|failure| failed(failure, refused))?;
            }
            round = found.round;
            match &found.place {
                Some(place) if place.is(lease.holder(), lease.token()) => created = place.created,
                _ => return Ok(released_earlier(&found.memory(), lease, None)),
            }
        }
        Err(crowded(Operation::Release, lease.resource()).outcome_unknown())
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
        let failed = |failure: Failure| failure.error_on(Operation::Release, lease.resource());
        let names = self.keys.names(lease.resource(), lease.holder());
        let token = lease.token();
        let give_back = || async {
            let found = self.find(&names).await.map_err(failed)?;
            let held = found
                .place
                .as_ref()
                .is_some_and(|place| place.is(lease.holder(), token) && place.value.has(attempt));
            if !held {
                let memory = found.memory();
                return Ok(Some(released_earlier(&memory, lease, Some(attempt))));
            }
            let ended = self.end_attempt(&names, found, attempt, token.get()).await;
            Ok(ended.map_err(failed)?.then_some(Released::Released))
        };
        insist(give_back, || crowded(Operation::Release, lease.resource())).await
    }

    pub(super) async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let failed = |failure: Failure| failure.error_on(Operation::Cancel, &attempt.resource);
        let names = self.keys.names(&attempt.resource, attempt.holder);
        let end = || async {
            let mut found = self.find(&names).await.map_err(failed)?;
            if found.place_of(attempt.holder).is_none() {
                found.place = None;
            }
            let ended = self.end_attempt(&names, found, attempt.id, 0).await;
            Ok(ended.map_err(failed)?.then_some(()))
        };
        insist(end, || crowded(Operation::Cancel, &attempt.resource)).await
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
        let mut mark = found.memory().ending(attempt, token);
        let compare = found.unchanged(names).into();
        let rest = found
            .place
            .as_ref()
            .map(|place| place.value.clone().without(attempt));
        let mut unused = None;
        let mut success = Vec::new();
        let mut memory = None;
        match rest {
            Some(rest) if !rest.attempts.is_empty() => {
                let lease = found.place.as_ref().map_or(0, |place| place.lease);
                success.push(Op::put(&found.key, rest.encode_to_vec(), lease));
                memory = found.mark.as_ref().map(|mark| mark.lease);
            }
            gone => {
                if gone.is_some() {
                    success.push(Op::delete(&found.key));
                    mark = mark.in_state(State::Idle);
                }
                // Its lease is given back, and the next attempt gets another one. So a late request
                // for this one finds nothing.
                if mark.state_is(State::Idle) {
                    mark.round += 1;
                    unused = Some(names.lease(found.round));
                }
            }
        }
        let memory = match memory {
            Some(memory) => memory,
            None => self.memory_of_ended().await?,
        };
        success.push(Op::put(&names.mark, mark.encode_to_vec(), memory));
        let txn = TxnRequest {
            compare,
            success,
            failure: Vec::new(),
        };
        let ended = match self.txn(&txn).await {
            Ok(answer) => answer.succeeded,
            Err(failure) if failure.no_lease() => {
                self.forget_memories();
                false
            }
            Err(failure) => return Err(failure),
        };
        if let Some(lease) = unused.filter(|_| ended) {
            self.revoker.revoke(lease);
        }
        Ok(ended)
    }

    pub(super) async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let failed = |failure: Failure| failure.error_on(Operation::ForceRelease, resource);
        let oldest = RangeRequest::oldest(&self.keys.line(resource));
        let read = self.read([oldest]).await.map_err(failed)?;
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
        let revocation = revocation.ok_or_else(|| {
            Error::not_applied(exhausted, Operation::ForceRelease, super::KIND).on(resource)
        })?;
        let ended = self.end_place(&holder.key, &place, token).await;
        if !ended.map_err(failed)? {
            return Ok(Forced::NotHeld);
        }
        // Its mark still says that it is in line, which means that the acquisition has ended.
        self.revoker.revoke(place.lease);
        Ok(Forced::Ended { revocation })
    }

    /// Deletes a place by force. False if it was gone, unless this very request deleted it: the
    /// client sends it again if there is no answer, and then finds the mark that it left.
    async fn end_place(
        &self,
        key: &[u8],
        place: &Kept<Place>,
        token: FencingToken,
    ) -> Result<bool, Failure> {
        let own = self.keys.fresh_mark();
        let mut tries = 0;
        loop {
            tries += 1;
            let mark = Mark::released(0, token).encode_to_vec();
            let txn = TxnRequest {
                compare: vec![Compare::created(key, place.created)],
                success: vec![
                    Op::delete(key),
                    Op::put(&own, mark, self.memory_of_ended().await?),
                ],
                failure: vec![Op::range(RangeRequest::key(&own))],
            };
            match self.txn(&txn).await {
                Ok(answer) if answer.succeeded => return Ok(true),
                Ok(answer) => return Ok(answer.ranges().any(|range| !range.kvs.is_empty())),
                Err(failure) if failure.no_lease() && tries < TRIES => self.forget_memories(),
                Err(failure) if tries > 1 => return Err(failure.after_another()),
                Err(failure) => return Err(failure),
            }
        }
    }
}

fn released_earlier(memory: &Mark, lease: &Sequencer, attempt: Option<AttemptId>) -> Released {
    let token = lease.token().get();
    let released = memory.state_is(State::Released) && memory.token == token;
    if released || attempt.and_then(|attempt| memory.end_of(attempt)) == Some(token) {
        return Released::Released;
    }
    Released::NotHolder
}
