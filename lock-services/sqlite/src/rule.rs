//! The decisions of the lock service, over its rows. The lock service in PostgreSQL has the same
//! rule in SQL.

use std::time::Duration;

use lock_core::{Error, ErrorKind, Released, backend::AcquireRequest};

use super::rows::{Asker, LAST_TOKEN, LeaseRow, Rows};

/// An answer or a refusal. The transaction commits in both cases.
pub(super) type Decision<T> = sqlx::Result<Result<T, Error>>;

/// The most attempts that share a lease.
const MOST_ATTEMPTS: usize = 1000;

/// So far may a floor be ahead of the clock, in tokens: a day. Clocks differ, but not by more.
const GREATEST_LEAD: i64 = 8_640_000_000;

/// The answer to a look.
#[derive(Clone, Copy, Debug)]
pub(super) enum Looked {
    Granted(Granted),
    Held(Duration),
    Waiting(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) token: i64,
    pub(super) left: Duration,
    pub(super) claimed: bool,
}

/// A request of an attempt, in the words of the rows.
pub(super) struct Acquisition {
    /// The name of the lease.
    pub(super) lease: String,
    pub(super) holder: String,
    pub(super) attempt: String,
    pub(super) request: AcquireRequest,
}

impl Acquisition {
    const fn asker(&self) -> Asker<'_> {
        Asker {
            resource: self.lease.as_str(),
            holder: self.holder.as_str(),
            attempt: self.attempt.as_str(),
        }
    }
}

impl Rows<'_> {
    /// One look. With a time to wait it takes a place in the queue, or keeps it.
    pub(super) async fn acquire(
        &mut self,
        asked: &Acquisition,
        wait: Option<Duration>,
    ) -> Decision<Looked> {
        let asker = asked.asker();
        if let Err(error) = self.check_floor(&asked.request) {
            return Ok(Err(error));
        }
        let lease = self.lease(asker.resource).await?;
        if self.has_ended(asker).await? {
            self.leave_queue(asker).await?;
            return refused(ErrorKind::Released);
        }
        let first = self.first_waiter(asker.resource).await?;
        let is_first = first.is_none_or(|first| first == asker.holder);
        let until = match lease {
            Some(lease) if lease.holder == asker.holder => {
                return self.share(asked, lease).await;
            }
            Some(lease) if !lease.is_free() => lease.expires_at,
            free if is_first => return self.grant_next(asked, free).await,
            _kept_for_the_first => self.now,
        };
        let left = self.left(until).max(Duration::from_millis(1));
        let Some(wait) = wait else {
            self.leave_queue(asker).await?;
            return Ok(Ok(Looked::Held(left)));
        };
        let wait_until = self.after(wait);
        let most = asked.request.max_waiters;
        if self.enqueue(asker, wait_until, most).await? {
            return Ok(Ok(Looked::Waiting(left)));
        }
        refused(ErrorKind::QueueFull)
    }

    /// The request was sent again, or is another attempt of the same acquisition.
    async fn share(&mut self, asked: &Acquisition, mut lease: LeaseRow) -> Decision<Looked> {
        if !lease.attempts.contains(&asked.attempt) {
            if lease.attempts.len() >= MOST_ATTEMPTS {
                return refused(ErrorKind::QueueFull);
            }
            lease.attempts.push(asked.attempt.clone());
            self.set_attempts(&asked.lease, &lease.attempts).await?;
        }
        self.granted(asked, lease.token, self.left(lease.expires_at))
            .await
    }

    async fn grant_next(
        &mut self,
        asked: &Acquisition,
        free: Option<LeaseRow>,
    ) -> Decision<Looked> {
        match self.grant_free(asked, free.as_ref()).await? {
            Some(token) => self.granted(asked, token, asked.request.ttl.get()).await,
            None => refused(ErrorKind::TokensExhausted),
        }
    }

    async fn granted(
        &mut self,
        asked: &Acquisition,
        token: i64,
        left: Duration,
    ) -> Decision<Looked> {
        self.leave_queue(asked.asker()).await?;
        let claimed = match &asked.request.claim {
            Some(issuer) => {
                let resource = asked.request.attempt.resource.as_str();
                self.claim(resource, &asked.holder, token, issuer.as_str())
                    .await?
            }
            None => false,
        };
        Ok(Ok(Looked::Granted(Granted {
            token,
            left,
            claimed,
        })))
    }

    /// Gives a free resource to an attempt. None: there are no tokens left.
    async fn grant_free(
        &mut self,
        asked: &Acquisition,
        free: Option<&LeaseRow>,
    ) -> sqlx::Result<Option<i64>> {
        let AcquireRequest {
            ttl,
            floor,
            metadata,
            ..
        } = &asked.request;
        let last = match free {
            Some(free) => free.last_token(),
            None => self.floor().await?,
        };
        let token = (last + 1).max(self.clock()).max(floor.map_or(0, i64::from));
        if token > LAST_TOKEN {
            return Ok(None);
        }
        let note = metadata.as_ref().map(|note| note.as_str());
        self.grant(asked.asker(), token, ttl.get(), note).await?;
        Ok(Some(token))
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
    ) -> Decision<Result<Vec<Granted>, Duration>> {
        let mut leases = Vec::with_capacity(asked.len());
        let mut held = None;
        for one in asked {
            let lease = self.lease(&one.lease).await?;
            if self.has_ended(one.asker()).await? {
                return refused(ErrorKind::Released);
            }
            if let Some(lease) = &lease
                && !lease.is_free()
                && lease.holder != one.holder
            {
                let left = self.left(lease.expires_at).max(Duration::from_millis(1));
                held = held.max(Some(left));
            }
            leases.push(lease);
        }
        if let Some(left) = held {
            return Ok(Ok(Err(left)));
        }
        for (one, lease) in asked.iter().zip(&leases) {
            if let Err(error) = self.check_floor(&one.request) {
                return Ok(Err(error));
            }
            let last = lease.as_ref().map_or(0, LeaseRow::last_token);
            if last >= LAST_TOKEN {
                return refused(ErrorKind::TokensExhausted);
            }
        }
        let mut granted = Vec::with_capacity(asked.len());
        for (one, lease) in asked.iter().zip(leases) {
            let looked = match lease {
                Some(own) if own.holder == one.holder => self.share(one, own).await?,
                free => self.grant_next(one, free).await?,
            };
            match looked {
                Ok(Looked::Granted(one)) => granted.push(one),
                Ok(_) => return refused(ErrorKind::Refused),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(Ok(granted)))
    }

    /// A tombstone may be left out if no copy of a request of this acquisition can still arrive.
    pub(super) async fn release(
        &mut self,
        resource: &str,
        holder: &str,
        token: i64,
        tombstone: bool,
    ) -> sqlx::Result<Released> {
        let whole = Asker {
            resource,
            holder,
            attempt: "",
        };
        let lease = self.lease(resource).await?;
        if lease.is_some_and(|lease| lease.holder == holder && lease.token == token) {
            if tombstone {
                self.bury(whole, token).await?;
            }
            self.free(resource).await?;
            return Ok(Released::Released);
        }
        self.released_before(whole, token).await
    }

    /// Gives back what one attempt has of a lease. The lease ends with its last attempt.
    pub(super) async fn release_hold(
        &mut self,
        hold: Asker<'_>,
        token: i64,
    ) -> sqlx::Result<Released> {
        let lease = self.lease(hold.resource).await?;
        match lease {
            Some(lease) if lease.token == token && lease.has(hold) => {
                self.bury(hold, token).await?;
                self.without(hold, lease).await?;
                Ok(Released::Released)
            }
            _ => self.released_before(hold, token).await,
        }
    }

    async fn released_before(&mut self, ended: Asker<'_>, token: i64) -> sqlx::Result<Released> {
        Ok(match self.was_released(ended, token).await? {
            true => Released::Released,
            false => Released::NotHolder,
        })
    }

    /// Ends an attempt: it holds nothing, waits for nothing, and never will.
    pub(super) async fn cancel(&mut self, attempt: Asker<'_>) -> sqlx::Result<()> {
        let lease = self.lease(attempt.resource).await?;
        self.bury(attempt, 0).await?;
        self.leave_queue(attempt).await?;
        match lease {
            Some(lease) if lease.has(attempt) => self.without(attempt, lease).await,
            _ => Ok(()),
        }
    }

    async fn without(&mut self, hold: Asker<'_>, mut lease: LeaseRow) -> sqlx::Result<()> {
        lease.attempts.retain(|attempt| attempt != hold.attempt);
        match &*lease.attempts {
            [] => self.free(hold.resource).await,
            rest => self.set_attempts(hold.resource, rest).await,
        }
    }

    /// Ends the lease with this token, whatever its holder. To its holder this looks as if it had
    /// run out.
    pub(super) async fn force_release(
        &mut self,
        resource: &str,
        token: i64,
    ) -> Decision<Option<i64>> {
        if let Some(same) = self.revocation_of(resource, token).await? {
            return Ok(Ok(Some(same)));
        }
        let lease = self.lease(resource).await?;
        let Some(lease) = lease.filter(|lease| !lease.is_free() && lease.token == token) else {
            return Ok(Ok(None));
        };
        let revocation = lease.last_token() + 1;
        if revocation > LAST_TOKEN {
            return refused(ErrorKind::TokensExhausted);
        }
        self.revoke(resource, &lease, revocation).await?;
        Ok(Ok(Some(revocation)))
    }
}

impl LeaseRow {
    fn has(&self, hold: Asker<'_>) -> bool {
        let mut attempts = self.attempts.iter();
        self.holder == hold.holder && attempts.any(|attempt| attempt == hold.attempt)
    }
}

fn refused<T>(kind: ErrorKind) -> Decision<T> {
    Ok(Err(Error::not_applied(kind)))
}
