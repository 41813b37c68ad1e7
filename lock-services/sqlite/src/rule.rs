//! The decisions of the lock service, over its rows. The lock service in PostgreSQL has the same
//! rule in SQL.

use std::time::Duration;

use lock_core::{
    Attempt, Error, ErrorKind, Released,
    backend::{
        AcquireRequest, Forced, Grant, Moment, Reply,
        support::database::{granted, queued, token},
    },
};

use super::rows::{Asker, LAST_TOKEN, LeaseRow, Rows};

/// An answer, with which the transaction commits, or no answer.
pub(super) type Decision<T> = Result<T, Stop>;

/// The end of a decision without an answer.
#[derive(Debug)]
pub(super) enum Stop {
    /// A refusal. The transaction commits: it may have ended a lease that ran out.
    Refused(Error),
    /// A statement failed, and the transaction with it.
    Failed(sqlx::Error),
}

/// The most attempts that share a lease.
const MOST_ATTEMPTS: usize = 1000;

/// So far may a floor be ahead of the clock, in tokens: a day. Clocks differ, but not by more.
const GREATEST_LEAD: i64 = 8_640_000_000;

/// A request of an attempt.
pub(super) struct Acquisition {
    pub(super) asker: Asker,
    pub(super) request: AcquireRequest,
    /// The time to wait in the queue; none if it leaves the queue.
    pub(super) wait: Option<Duration>,
    /// The moment from which its lease counts.
    pub(super) asked: Moment,
}

/// How an attempt gets a lease.
enum Plan {
    /// The request was sent again, or is another attempt of the same acquisition.
    Share(LeaseRow),
    /// It is free. This is its next token.
    Grant(i64),
}

impl Rows<'_> {
    /// One look. With a time to wait it takes a place in the queue, or keeps it.
    pub(super) async fn acquire(&mut self, asked: &Acquisition) -> Decision<Reply> {
        let asker = &asked.asker;
        self.check_floor(&asked.request)?;
        let lease = self.lease(&asker.lease).await?;
        if self.has_ended(asker).await? {
            self.leave_queue(asker).await?;
            return refused(ErrorKind::Released);
        }
        let first = self.first_waiter(&asker.lease).await?;
        let is_first = first.is_none_or(|first| first == asker.holder);
        let plan = match lease {
            Some(lease) if lease.holder == asker.holder => self.plan(asked, Some(lease)).await?,
            Some(lease) if !lease.is_free() => return self.wait(asked, lease.expires_at).await,
            free if is_first => self.plan(asked, free).await?,
            _kept_for_the_first => return self.wait(asked, self.now).await,
        };
        Ok(Reply::Granted(self.carry_out(asked, plan).await?))
    }

    /// Another holder has the resource until then, or comes first.
    async fn wait(&mut self, asked: &Acquisition, until: i64) -> Decision<Reply> {
        let left = self.left(until).max(Duration::from_millis(1));
        let Some(wait) = asked.wait else {
            self.leave_queue(&asked.asker).await?;
            return Ok(Reply::Held { left });
        };
        let (until, most) = (self.after(wait), asked.request.max_waiters);
        match self.enqueue(&asked.asker, until, most).await? {
            true => Ok(queued(left)),
            false => refused(ErrorKind::QueueFull),
        }
    }

    /// Decides how an attempt gets a lease that is free, or that its holder has. Nothing is written.
    async fn plan(&mut self, asked: &Acquisition, lease: Option<LeaseRow>) -> Decision<Plan> {
        let Acquisition { asker, request, .. } = asked;
        let last = match lease {
            Some(own) if own.holder == asker.holder => {
                let is_full = own.attempts.len() >= MOST_ATTEMPTS && !own.has(asker);
                return match is_full {
                    true => refused(ErrorKind::QueueFull),
                    false => Ok(Plan::Share(own)),
                };
            }
            Some(free) => free.last_token(),
            None => self.floor().await?,
        };
        let least = request.floor.map_or(0, i64::from);
        let token = (last + 1).max(self.clock()).max(least);
        match token > LAST_TOKEN {
            true => refused(ErrorKind::TokensExhausted),
            false => Ok(Plan::Grant(token)),
        }
    }

    async fn carry_out(&mut self, asked: &Acquisition, plan: Plan) -> Decision<Grant> {
        let Acquisition { asker, request, .. } = asked;
        match plan {
            Plan::Share(mut own) => {
                if !own.has(asker) {
                    own.attempts.push(asker.attempt.clone());
                    self.set_attempts(&asker.lease, &own.attempts).await?;
                }
                let left = self.left(own.expires_at);
                self.granted(asked, own.token, left).await
            }
            Plan::Grant(token) => {
                let (ttl, note) = (request.ttl.get(), request.metadata.as_ref());
                let note = note.map(|note| note.as_str());
                self.grant(asker, token, ttl, note).await?;
                self.granted(asked, token, ttl).await
            }
        }
    }

    async fn granted(
        &mut self,
        asked: &Acquisition,
        token: i64,
        left: Duration,
    ) -> Decision<Grant> {
        self.leave_queue(&asked.asker).await?;
        let claimed = match &asked.request.claim {
            Some(issuer) => {
                let resource = asked.request.attempt.resource.as_str();
                self.claim(resource, &asked.asker.holder, token, issuer.as_str())
                    .await?
            }
            None => false,
        };
        let grant = granted(token.unsigned_abs(), left, asked.asked)?;
        Ok(grant.claimed(claimed))
    }

    /// The clock as a token: it has 15 digits until the year 2286.
    const fn clock(&self) -> i64 {
        self.now / 10
    }

    /// A floor that is far ahead of the clock must be a mistake, and would use the tokens up.
    fn check_floor(&self, request: &AcquireRequest) -> Result<(), Error> {
        let greatest = (self.clock() + GREATEST_LEAD).min(LAST_TOKEN);
        match request.floor {
            Some(floor) if i64::from(floor) > greatest => {
                Err(Error::not_applied(ErrorKind::FloorImplausible)
                    .because(format!("at most {greatest} is plausible now")))
            }
            _ => Ok(()),
        }
    }

    /// Several leases, all or none, past those who wait. They are of one holder and attempt.
    pub(super) async fn acquire_together(
        &mut self,
        asked: &[Acquisition],
    ) -> Decision<Attempt<Vec<Grant>>> {
        let mut leases = Vec::with_capacity(asked.len());
        let mut held = None;
        for Acquisition { asker, .. } in asked {
            let lease = self.lease(&asker.lease).await?;
            if self.has_ended(asker).await? {
                return refused(ErrorKind::Released);
            }
            if let Some(lease) = &lease
                && !lease.is_free()
                && lease.holder != asker.holder
            {
                let left = self.left(lease.expires_at).max(Duration::from_millis(1));
                held = held.max(Some(left));
            }
            leases.push(lease);
        }
        if let Some(left) = held {
            return Ok(Attempt::held(left));
        }
        // All are decided before the first is written, because a refusal commits.
        let mut plans = Vec::with_capacity(asked.len());
        for (one, lease) in asked.iter().zip(leases) {
            self.check_floor(&one.request)?;
            plans.push(self.plan(one, lease).await?);
        }
        let mut grants = Vec::with_capacity(asked.len());
        for (one, plan) in asked.iter().zip(plans) {
            grants.push(self.carry_out(one, plan).await?);
        }
        Ok(Attempt::Granted(grants))
    }

    /// A tombstone may be left out if no copy of a request of this acquisition can still arrive.
    pub(super) async fn release(
        &mut self,
        whole: &Asker,
        token: i64,
        tombstone: bool,
    ) -> Decision<Released> {
        let lease = self.lease(&whole.lease).await?;
        if lease.is_some_and(|lease| lease.holder == whole.holder && lease.token == token) {
            if tombstone {
                self.bury(whole, token).await?;
            }
            self.free(&whole.lease).await?;
            return Ok(Released::Released);
        }
        self.released_before(whole, token).await
    }

    /// Gives back what one attempt has of a lease. The lease ends with its last attempt.
    pub(super) async fn release_hold(&mut self, hold: &Asker, token: i64) -> Decision<Released> {
        let lease = self.lease(&hold.lease).await?;
        match lease {
            Some(lease) if lease.token == token && lease.has(hold) => {
                self.bury(hold, token).await?;
                self.without(hold, lease).await?;
                Ok(Released::Released)
            }
            _ => self.released_before(hold, token).await,
        }
    }

    async fn released_before(&mut self, ended: &Asker, token: i64) -> Decision<Released> {
        Ok(match self.was_released(ended, token).await? {
            true => Released::Released,
            false => Released::NotHolder,
        })
    }

    /// Ends an attempt: it holds nothing, waits for nothing, and never will.
    pub(super) async fn cancel(&mut self, attempt: &Asker) -> Decision<()> {
        let lease = self.lease(&attempt.lease).await?;
        self.bury(attempt, 0).await?;
        self.leave_queue(attempt).await?;
        match lease {
            Some(lease) if lease.has(attempt) => Ok(self.without(attempt, lease).await?),
            _ => Ok(()),
        }
    }

    async fn without(&mut self, hold: &Asker, mut lease: LeaseRow) -> sqlx::Result<()> {
        lease.attempts.retain(|attempt| *attempt != hold.attempt);
        match &*lease.attempts {
            [] => self.free(&hold.lease).await,
            rest => self.set_attempts(&hold.lease, rest).await,
        }
    }

    /// Ends the lease with this token, whatever its holder. To its holder this looks as if it had
    /// run out.
    pub(super) async fn force_release(&mut self, name: &str, token: i64) -> Decision<Forced> {
        if let Some(same) = self.revocation_of(name, token).await? {
            return ended(same);
        }
        let lease = self.lease(name).await?;
        let Some(lease) = lease.filter(|lease| !lease.is_free() && lease.token == token) else {
            return Ok(Forced::NotHeld);
        };
        let revocation = lease.last_token() + 1;
        if revocation > LAST_TOKEN {
            return refused(ErrorKind::TokensExhausted);
        }
        self.revoke(name, lease, revocation).await?;
        ended(revocation)
    }
}

fn ended(revocation: i64) -> Decision<Forced> {
    let revocation = token(revocation.unsigned_abs())?;
    Ok(Forced::Ended { revocation })
}

impl LeaseRow {
    fn has(&self, hold: &Asker) -> bool {
        self.holder == hold.holder && self.attempts.contains(&hold.attempt)
    }
}

fn refused<T>(kind: ErrorKind) -> Decision<T> {
    Err(Error::not_applied(kind).into())
}

impl From<Error> for Stop {
    fn from(refusal: Error) -> Self {
        Self::Refused(refusal)
    }
}

impl From<sqlx::Error> for Stop {
    fn from(failure: sqlx::Error) -> Self {
        Self::Failed(failure)
    }
}
