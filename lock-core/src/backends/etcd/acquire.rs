use std::time::Duration;

use prost::Message;

use super::{
    KIND,
    floor::Floor,
    keys::Names,
    record::{Kept, Mark, Place, State, token},
    service::{Found, Granted, Service, TRIES, crowded},
    waiting::Turn,
    wire::{Compare, Op, RangeRequest, TxnRequest, TxnResponse},
};
use crate::{
    AcquireRequest, Attempt, Error, ErrorKind, FencingToken, Grant, InitialToken, Lease, Moment,
    Operation, Upkeep, Wait,
};

/// A request to acquire, while it is under way.
pub(super) struct Acquisition<'a> {
    pub(super) service: &'a Service,
    pub(super) request: &'a AcquireRequest,
    pub(super) names: Names,
    /// What is remembered of it, as far as we have heard.
    mark: Option<Kept<Mark>>,
    pub(super) round: u32,
    /// Since when its lease lives at least, and its length. `None`: we do not know.
    pub(super) kept: Option<(Moment, Duration)>,
    /// The lease that its mark hangs on.
    pub(super) memory: i64,
}

/// A place in line.
#[derive(Debug)]
pub(super) struct InLine {
    pub(super) key: Vec<u8>,
    pub(super) created: i64,
    floor: u64,
    /// Whether an earlier attempt has made it.
    replayed: bool,
    /// How many are before it, and the last of them, at a revision; `None`: to be looked up.
    pub(super) ahead: Option<Ahead>,
}

/// Who is before a place.
#[derive(Debug)]
pub(super) struct Ahead {
    pub(super) number: i64,
    pub(super) last: Option<Vec<u8>>,
    pub(super) revision: i64,
}

enum Entered {
    InLine(InLine),
    /// Somebody holds it, and this one does not wait.
    Held,
    /// Something was not as we thought. Now we know better.
    Again,
}

impl Service {
    pub(super) async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        let resource = &request.attempt.resource;
        if let Some(floor) = request.floor {
            let last = self.last_token().await?;
            let plausible = self.check_plausible(floor, last, Operation::Acquire);
            plausible.map_err(|error| error.on(resource))?;
        }
        let mut acquisition = Acquisition {
            service: self,
            request,
            names: self.keys.names(resource, request.attempt.holder),
            mark: None,
            round: 0,
            kept: None,
            memory: 0,
        };
        acquisition.run().await
    }

    /// The last token that can have been issued, where the plausibility of a floor hangs on it.
    async fn last_token(&self) -> Result<u64, Error> {
        match self.initial {
            InitialToken::Clock => Ok(0),
            InitialToken::At(_) => {
                let last = self.standing().await?.last;
                Ok(last.map_or(0, u64::from))
            }
        }
    }

    /// Refuses a floor that must be a mistake.
    pub(super) fn check_plausible(
        &self,
        floor: FencingToken,
        last: u64,
        operation: Operation,
    ) -> Result<(), Error> {
        let greatest = self.initial.greatest_floor(last, self.clock().unix_time());
        if floor.get() <= greatest {
            return Ok(());
        }
        let implausible = Error::new(ErrorKind::FloorImplausible, operation, KIND);
        Err(implausible.because(format!("the greatest that can be right is {greatest}")))
    }
}

impl Acquisition<'_> {
    async fn run(&mut self) -> Result<Attempt<Grant>, Error> {
        for _ in 0..TRIES {
            let place = match self.enter().await? {
                Entered::InLine(place) => place,
                Entered::Held => return self.held().await,
                Entered::Again => continue,
            };
            match self.stand(&place).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {}
                Err(error) => return Err(with_place(error)),
            }
        }
        Err(crowded(Operation::Acquire, &self.request.attempt.resource))
    }

    /// Waits in line until there is an answer. `None` if the place was given back for another one.
    async fn stand(&mut self, place: &InLine) -> Result<Option<Attempt<Grant>>, Error> {
        if self.is_one_too_many(place) {
            self.service.cancel(&self.request.attempt).await?;
            return Err(self.error(ErrorKind::QueueFull));
        }
        let waited = match self.wait(place).await? {
            Turn::Ours { waited } => waited,
            Turn::Over => {
                self.service.cancel(&self.request.attempt).await?;
                return self.held().await.map(Some);
            }
        };
        let Some(token) = token(place.floor, place.created) else {
            self.service.cancel(&self.request.attempt).await?;
            return Err(self.error(ErrorKind::TokensExhausted));
        };
        let enough = self.request.floor.is_none_or(|floor| floor <= token);
        if enough || place.replayed || !self.leave_for_more(place).await? {
            return self.granted(token, waited).await.map(Some);
        }
        Ok(None)
    }

    /// Takes a place in line, or finds the one that it has.
    async fn enter(&mut self) -> Result<Entered, Error> {
        let floor = self.service.known_floor().await?;
        let (ttl, lease) = (self.request.ttl.get(), self.names.lease(self.round));
        if self.kept.is_none() {
            let granted = self.service.grant(lease, ttl).await;
            if let Granted::New { asked, ttl } = granted.map_err(|failure| self.failed(failure))? {
                self.kept = Some((asked, ttl));
            }
        }
        let memory = self.service.memory(ttl).await;
        self.memory = memory.map_err(|failure| self.failed(failure))?;
        let txn = self.entry(floor, lease);
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
        if self.kept.is_none() {
            // It was granted to a request that we never had an answer to.
            self.keep_alive().await.map_err(with_place)?;
        }
        let created = answer.revision();
        let ahead = answer.ranges().next().unwrap_or_default();
        let last = ahead
            .kvs
            .into_iter()
            .find(|entry| entry.create_revision < created);
        Ok(Entered::InLine(InLine {
            key: self.names.place(lease),
            created,
            floor: floor.value,
            replayed: false,
            ahead: Some(Ahead {
                number: ahead.count - 1,
                last: last.map(|entry| entry.key),
                revision: created,
            }),
        }))
    }

    /// Everything that makes a place in line, in one step: nobody has cancelled it, it has none
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
        let place = Place::new(attempt.holder, attempt.id, floor.value, note);
        let free = match self.request.wait {
            Wait::Never => Compare::none(&names.line),
            Wait::Until(_) | Wait::Forever => Compare::created(&key, 0),
        };
        TxnRequest {
            compare: vec![
                free,
                Compare::changed(&names.mark, changed),
                if floor.retired {
                    // Only what is there already may be found.
                    Compare::never(&floor_key)
                } else {
                    Compare::changed(&floor_key, floor.changed)
                },
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
        let found = Found::read(self.names.place(lease), self.round, &mut ranges);
        let memory = found.memory();
        if memory.end_of(attempt.id).is_some() {
            return Err(self.ended(found.place.is_none().then_some(lease)));
        }
        if found.place.is_some() {
            return self.join(found).await;
        }
        if memory.state_is(State::InLine) || memory.state_is(State::Released) {
            return Err(self.ended(Some(lease)));
        }
        let mut first = || ranges.next().and_then(|range| range.kvs.into_iter().next());
        let (floor, holder) = (first(), first());
        self.service
            .note_floor(floor.as_ref())
            .map_err(|error| error.on(&attempt.resource))?;
        if memory.round != self.round {
            self.service.revoker.revoke(lease);
            self.kept = None;
        }
        self.round = memory.round;
        self.mark = found.mark;
        // The lease is left to end by itself: the next attempt of this holder asks for one with the
        // same number, and a late end of this one would be the end of that.
        if holder.is_some() && self.request.wait == Wait::Never {
            return Ok(Entered::Held);
        }
        if self.service.floor().is_some_and(|floor| floor.retired) {
            return Err(self.error(ErrorKind::Retired));
        }
        Ok(Entered::Again)
    }

    /// Relies on the place that an earlier attempt has made.
    async fn join(&mut self, found: Found) -> Result<Entered, Error> {
        let attempt = &self.request.attempt;
        let Some(place) = found.place_of(attempt.holder) else {
            return Err(self
                .error(ErrorKind::Refused)
                .because("another holder has its lease"));
        };
        if !place.value.has(attempt.id) {
            let mut joined = place.value.clone();
            joined.attempts.push(attempt.id.to_string());
            let txn = TxnRequest {
                compare: found.unchanged(&self.names).into(),
                success: vec![Op::put(&found.key, joined.encode_to_vec(), place.lease)],
                failure: Vec::new(),
            };
            let answer = self.service.txn(&txn).await;
            if !answer.map_err(|failure| self.failed(failure))?.succeeded {
                return Ok(Entered::Again);
            }
        }
        if self.kept.is_none() {
            // Not kept alive: who asks again gains no time.
            let asked = self.service.now();
            let left = self.service.left(place.lease).await;
            let left = left.map_err(|failure| with_place(self.failed(failure)))?;
            let Some(left) = left else {
                return Ok(Entered::Again);
            };
            self.kept = Some((asked, left));
        }
        self.memory = found.mark.as_ref().map_or(self.memory, |mark| mark.lease);
        Ok(Entered::InLine(InLine {
            created: place.created,
            floor: place.value.floor,
            replayed: true,
            ahead: None,
            key: found.key,
        }))
    }

    /// Gives the place back in order to get one with a greater token, at the end of the line.
    ///
    /// The floor is raised in the same step, while we hold the resource: so no other holder's token
    /// comes to lie between. False if others rely on the place.
    async fn leave_for_more(&mut self, place: &InLine) -> Result<bool, Error> {
        let least = match self.request.floor {
            Some(floor) => Floor::for_token(floor, place.created),
            None => 0,
        };
        for _ in 0..TRIES {
            let floor = self.service.known_floor().await?;
            let found = self.service.find(&self.names).await;
            let found = found.map_err(|failure| self.failed(failure))?;
            match &found.place {
                Some(present) if present.value.attempts.len() > 1 => return Ok(false),
                Some(present) if present.created == place.created => {}
                _ => return Err(self.ended(None)),
            }
            let key = self.service.keys.floor();
            let value = std::cmp::max(floor.value, least);
            let raised = Floor { value, ..floor };
            let mark = found.memory().in_state(State::Idle);
            let mut txn = TxnRequest {
                compare: found.unchanged(&self.names).into(),
                success: vec![
                    Op::put(&key, raised.text(), 0),
                    Op::delete(&found.key),
                    Op::put(&self.names.mark, mark.encode_to_vec(), self.memory),
                ],
                failure: vec![Op::range(RangeRequest::key(&key))],
            };
            txn.compare.push(Compare::changed(&key, floor.changed));
            let answer = self.service.txn(&txn).await;
            let answer = answer.map_err(|failure| self.failed(failure))?;
            if answer.succeeded {
                // The mark and the floor are read again with the next entry.
                return Ok(true);
            }
            let floor = answer.ranges().flat_map(|range| range.kvs).next();
            self.service.note_floor(floor.as_ref())?;
        }
        Err(crowded(Operation::Acquire, &self.request.attempt.resource))
    }

    async fn granted(
        &mut self,
        token: FencingToken,
        waited: bool,
    ) -> Result<Attempt<Grant>, Error> {
        if waited && self.request.upkeep == Upkeep::None {
            // Nobody may renew it soon: it has its full length.
            self.keep_alive().await?;
        }
        let (since, ttl) = self.kept.ok_or_else(|| self.ended(None))?;
        let grant = Grant::new(token, Lease::counted_from(since, ttl));
        Ok(Attempt::Granted(if waited {
            grant.after_waiting()
        } else {
            grant
        }))
    }

    async fn held(&self) -> Result<Attempt<Grant>, Error> {
        let look = self.service.time_left(&self.request.attempt.resource).await;
        let retry_after = look.map_err(|failure| self.failed(failure))?;
        Ok(Attempt::Held { retry_after })
    }

    /// Whether as many as allowed were waiting when it came.
    fn is_one_too_many(&self, place: &InLine) -> bool {
        let (Some(most), Some(ahead)) = (self.request.max_waiters, &place.ahead) else {
            return false;
        };
        // The first of them holds it.
        ahead.number > i64::from(most)
    }

    /// Its lease lives for its full length from now on. An error if it has ended.
    pub(super) async fn keep_alive(&mut self) -> Result<(), Error> {
        let lease = self.names.lease(self.round);
        let kept = self.service.keep_alive(&[lease]).await;
        let (asked, answers) = kept.map_err(|failure| self.failed(failure))?;
        let Some(Some((ttl, _))) = answers.first() else {
            return Err(self.ended(None));
        };
        self.kept = Some((asked, *ttl));
        Ok(())
    }

    pub(super) fn failed(&self, failure: super::failure::Failure) -> Error {
        failure.error_on(Operation::Acquire, &self.request.attempt.resource)
    }

    /// The error for an acquisition that has ended. Its lease is given back if it has no place.
    pub(super) fn ended(&self, unused: Option<i64>) -> Error {
        if let Some(lease) = unused {
            self.service.revoker.revoke(lease);
        }
        self.error(ErrorKind::Released)
    }

    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(kind, Operation::Acquire, KIND).on(&self.request.attempt.resource)
    }
}

/// The error of an acquisition that has a place in line: whoever gets it has to cancel, unless it
/// says that the place is gone.
fn with_place(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Released | ErrorKind::QueueFull | ErrorKind::TokensExhausted => error,
        _ => error.outcome_unknown(),
    }
}
