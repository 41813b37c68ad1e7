use super::{
    acquisition::{Acquisition, may_be_queued},
    enqueue::Enqueued,
    leases::told,
    queued::{Ahead, Queued},
    record::token,
    service::{ELECTION, Service, TRIES, crowded},
    waiting::Turn,
};
use std::sync::Arc;

use lock_core::{
    Attempt, Error, ErrorKind, FencingToken, InitialToken, Outcome,
    backend::{AcquireRequest, Grant, Lease, Wait},
};

/// What became of an entry.
pub(super) enum Waited {
    Answer(Attempt<Grant>),
    /// It is not there any more. What that means shows when another one is asked for.
    Gone,
}

impl Service {
    pub(super) async fn acquire(
        self: &Arc<Self>,
        request: &AcquireRequest,
    ) -> Result<Attempt<Grant>, Error> {
        if let Some(floor) = request.floor {
            let last = self.last_token().await?;
            self.check_plausible(floor, last)?;
        }
        let mut acquisition = Acquisition {
            service: self,
            request,
            names: self
                .keys
                .names(&request.attempt.resource, request.attempt.holder),
            tombstone: None,
            lease: None,
            on: 0,
            kept: None,
            sent_once: false,
        };
        let silent = self.client.silence.outlasts(request.wait, ELECTION);
        let answer = tokio::select! {
            biased;
            answer = acquisition.run() => answer,
            error = silent => Err(error),
        };
        if let Err(error) = &answer
            && error.outcome() == Outcome::NotApplied
        {
            acquisition.lose_lease();
        }
        answer
    }

    /// The last token that can have been issued, if the plausibility of a floor depends on it.
    async fn last_token(&self) -> Result<u64, Error> {
        match self.initial {
            InitialToken::Clock => Ok(0),
            InitialToken::At(_) => {
                let (floor, revision) = self.read_floor().await?;
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
        let implausible = Error::not_applied(ErrorKind::FloorImplausible);
        Err(implausible.because(format!("the greatest that can be right is {greatest}")))
    }
}

impl Acquisition<'_> {
    async fn run(&mut self) -> Result<Attempt<Grant>, Error> {
        for turn in 0..TRIES {
            let mut entered = self.enqueue().await;
            self.sent_once &= turn == 0;
            if turn > 0 {
                // What was refused may have been done by its first copy, as with `insist`.
                entered = entered.map_err(may_be_queued);
            }
            let (entry, ahead) = match entered? {
                Enqueued::Queued(entry, ahead) => (entry, ahead),
                Enqueued::Held => return self.held().await,
                Enqueued::Retry => continue,
            };
            match self.stand(entry, ahead).await {
                Ok(Waited::Answer(answer)) => return Ok(answer),
                Ok(Waited::Gone) => self.lose_lease(),
                Err(error) => return Err(may_be_queued(error)),
            }
        }
        Err(may_be_queued(crowded()))
    }

    /// Waits in the queue until there is an answer, or the entry is gone.
    async fn stand(&mut self, entry: Queued, ahead: Ahead) -> Result<Waited, Error> {
        if self.is_one_too_many(&ahead) {
            self.service.cancel(&self.request.attempt).await?;
            return Err(Error::not_applied(ErrorKind::QueueFull));
        }
        let (seen, waited) = match self.wait(&entry, ahead).await? {
            Turn::Ours { seen, waited } => (seen, waited),
            Turn::Gone => return self.gone(),
            Turn::Over => {
                self.service.cancel(&self.request.attempt).await?;
                return self.held().await.map(Waited::Answer);
            }
        };
        let Some(token) = token(entry.floor, entry.created) else {
            self.service.cancel(&self.request.attempt).await?;
            return Err(Error::not_applied(ErrorKind::TokensExhausted));
        };
        if token.get() < seen.least {
            self.leave_for_more(&entry, &seen).await?;
            return Ok(Waited::Gone);
        }
        let Some(life) = self.kept else {
            return self.gone();
        };
        // Not of all of the slack, which the next one may use up.
        let until = std::cmp::min(life.end(), seen.asked + told(life.length));
        let lease = Lease::counted_from(seen.asked, until.since(seen.asked));
        let grant = Grant::new(token, lease).all_answered(self.sent_once);
        Ok(Waited::Answer(Attempt::Granted(if waited {
            grant.after_waiting()
        } else {
            grant
        })))
    }

    /// Its entry has gone with its lease, or somebody has ended it. If there is a tombstone, that
    /// one says so.
    fn gone(&self) -> Result<Waited, Error> {
        match self.leaves_tombstone() {
            true => Ok(Waited::Gone),
            false => Err(Error::not_applied(ErrorKind::Released)),
        }
    }

    async fn held(&self) -> Result<Attempt<Grant>, Error> {
        let resource = &self.request.attempt.resource;
        let retry_after = self.service.time_left(resource).await?;
        Ok(Attempt::Held { retry_after })
    }

    /// Whether as many as allowed were already waiting when it came. If its entry was there before,
    /// fewer may be ahead of it by now, but never more.
    fn is_one_too_many(&self, ahead: &Ahead) -> bool {
        let waits = self.request.wait != Wait::Never;
        let most = self.request.max_waiters.filter(|_| waits);
        // The first of them holds it.
        most.is_some_and(|most| ahead.number > i64::from(most))
    }
}
