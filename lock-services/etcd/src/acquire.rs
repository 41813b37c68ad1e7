use std::time::Duration;

use super::{
    KIND,
    entry::Entered,
    keys::Names,
    record::{Kept, Mark, token},
    service::{Service, TRIES, crowded},
    waiting::Turn,
};
use lock_core::{
    AcquireRequest, Attempt, Error, ErrorKind, FencingToken, Grant, InitialToken, Lease, Moment,
    Operation, Wait,
};

/// A request to acquire, while it is under way.
pub(super) struct Acquisition<'a> {
    pub(super) service: &'a Service,
    pub(super) request: &'a AcquireRequest,
    pub(super) names: Names,
    /// What is remembered of it, as far as we have heard.
    pub(super) mark: Option<Kept<Mark>>,
    pub(super) round: u32,
    /// How long its lease lives. `None`: we do not know.
    pub(super) kept: Option<Life>,
    /// The lease that its mark is attached to.
    pub(super) memory: i64,
}

/// A place in line.
#[derive(Debug)]
pub(super) struct InLine {
    pub(super) key: Vec<u8>,
    pub(super) created: i64,
    pub(super) floor: u64,
}

/// Who is before a place, and what became of the place.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    /// How many are before it, up to as many as were asked for, and the last of them.
    pub(super) number: i64,
    pub(super) last: Option<Vec<u8>>,
    /// [`Place::least`](super::record::Place).
    pub(super) least: u64,
    /// When the look began, what the cluster's revision was, and its term.
    pub(super) asked: Moment,
    pub(super) revision: i64,
    pub(super) term: u64,
}

/// How long a lease lives at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) since: Moment,
    pub(super) ttl: Duration,
    /// The term in which a leader said so on its own. `None` for what a majority has agreed on,
    /// such as the grant of a lease.
    pub(super) said_in: Option<u64>,
}

impl Life {
    /// What that look at the place proves of it. `None` if the leader that said so may have been
    /// deposed by the time of the look.
    pub(super) fn proven_by(self, seen: &Ahead) -> Option<Self> {
        let led = self.said_in.is_none_or(|term| term == seen.term);
        led.then(|| Self {
            since: std::cmp::min(self.since, seen.asked),
            ..self
        })
    }
}

/// What became of a place.
pub(super) enum Stood {
    Answer(Attempt<Grant>),
    /// It is not there any more. What that means shows when another one is asked for.
    Gone,
}

impl Service {
    pub(super) async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        let resource = &request.attempt.resource;
        if let Some(floor) = request.floor {
            let last = self.last_token().await?;
            let plausible = self.check_plausible(floor, last);
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

    /// The last token that can have been issued, if the plausibility of a floor depends on it.
    async fn last_token(&self) -> Result<u64, Error> {
        match self.initial {
            InitialToken::Clock => Ok(0),
            InitialToken::At(_) => {
                let (floor, revision) = self.read_floor(Operation::Acquire).await?;
                Ok(token(floor.value, revision).map_or(0, u64::from))
            }
        }
    }

    /// Refuses a floor that must be a mistake.
    fn check_plausible(&self, floor: FencingToken, last: u64) -> Result<(), Error> {
        let now = self.clock().unix_time();
        let greatest = self.initial.greatest_floor(last, now);
        if floor.get() <= greatest {
            return Ok(());
        }
        let implausible = Error::not_applied(ErrorKind::FloorImplausible, Operation::Acquire, KIND);
        Err(implausible.because(format!("the greatest that can be right is {greatest}")))
    }
}

impl Acquisition<'_> {
    async fn run(&mut self) -> Result<Attempt<Grant>, Error> {
        for turn in 0..TRIES {
            let mut entered = self.enter().await;
            if turn > 0 {
                // What was refused may have been done by its first copy, as with `insist`.
                entered = entered.map_err(with_place);
            }
            let (place, ahead) = match entered? {
                Entered::InLine(place, ahead) => (place, ahead),
                Entered::Held => return self.held().await,
                Entered::Again => continue,
            };
            match self.stand(place, ahead).await {
                Ok(Stood::Answer(answer)) => return Ok(answer),
                Ok(Stood::Gone) => {}
                Err(error) => return Err(with_place(error)),
            }
        }
        Err(with_place(crowded(
            Operation::Acquire,
            &self.request.attempt.resource,
        )))
    }

    /// Waits in line until there is an answer, or the place is gone.
    async fn stand(&mut self, place: InLine, ahead: Ahead) -> Result<Stood, Error> {
        if self.is_one_too_many(&ahead) {
            self.service.cancel(&self.request.attempt).await?;
            return Err(self.error(ErrorKind::QueueFull));
        }
        let (seen, waited) = match self.wait(&place, ahead).await? {
            Turn::Ours { seen, waited } => (seen, waited),
            Turn::Gone => return Ok(Stood::Gone),
            Turn::Over => {
                self.service.cancel(&self.request.attempt).await?;
                return self.held().await.map(Stood::Answer);
            }
        };
        let Some(token) = token(place.floor, place.created) else {
            self.service.cancel(&self.request.attempt).await?;
            return Err(self.error(ErrorKind::TokensExhausted));
        };
        if token.get() < seen.least {
            self.leave_for_more(&place, &seen).await?;
            return Ok(Stood::Gone);
        }
        let Some(Life { since, ttl, .. }) = self.kept else {
            return Ok(Stood::Gone);
        };
        let grant = Grant::new(token, Lease::counted_from(since, ttl));
        Ok(Stood::Answer(Attempt::Granted(if waited {
            grant.after_waiting()
        } else {
            grant
        })))
    }

    async fn held(&self) -> Result<Attempt<Grant>, Error> {
        let look = self.service.time_left(&self.request.attempt.resource).await;
        let retry_after = look.map_err(|failure| self.failed(failure))?;
        Ok(Attempt::Held { retry_after })
    }

    /// Whether as many as allowed were already waiting when it came. If its place was there before,
    /// fewer may be ahead of it by now, but never more.
    fn is_one_too_many(&self, ahead: &Ahead) -> bool {
        let waits = self.request.wait != Wait::Never;
        let most = self.request.max_waiters.filter(|_| waits);
        // The first of them holds it.
        most.is_some_and(|most| ahead.number > i64::from(most))
    }

    /// Keeps its lease alive for its full length from now on. False if it has ended.
    pub(super) async fn keep_alive(&mut self) -> Result<bool, Error> {
        let lease = self.names.lease(self.round);
        let kept = self.service.keep_alive(&[lease]).await;
        let (since, answers) = kept.map_err(|failure| self.failed(failure))?;
        let length = answers.into_iter().next().flatten();
        self.kept = length.map(|(ttl, term)| Life {
            since,
            ttl,
            said_in: Some(term),
        });
        Ok(self.kept.is_some())
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

    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        Error::not_applied(kind, Operation::Acquire, KIND).on(&self.request.attempt.resource)
    }
}

/// The error of an acquisition that has a place in line, or may have one. Whoever gets it has to
/// cancel, unless it says that there is no place any more.
pub(super) fn with_place(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Released | ErrorKind::QueueFull | ErrorKind::TokensExhausted => error,
        _ => error.outcome_unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn what_a_leader_says_by_himself_counts_if_he_led_at_the_time_of_the_look() {
        let seen = Ahead {
            number: 0,
            last: None,
            least: 0,
            asked: at(5),
            revision: 1,
            term: 3,
        };
        let life = |since, said_in| Life {
            since: at(since),
            ttl: Duration::from_secs(9),
            said_in,
        };
        let since = |life: Life| life.proven_by(&seen).map(|life| life.since);
        assert_eq!(since(life(4, Some(3))), Some(at(4)));
        // Kept alive after the look: the leader's successor may have begun right after it.
        assert_eq!(since(life(6, Some(3))), Some(at(5)));
        assert_eq!(since(life(4, Some(2))), None);
        assert_eq!(since(life(4, Some(4))), None);
        // A majority has granted it.
        assert_eq!(since(life(4, None)), Some(at(4)));
    }
}
