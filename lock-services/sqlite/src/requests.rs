//! The requests. Each visits its leases, lets the rule decide, and writes the changes.

use std::time::Duration;

use lock_core::{
    Attempt, Error, FencingToken,
    backend::{
        AcquireRequest, Forced, Grant, Reply,
        support::{database::queued, rule::Tokens},
    },
};

use super::{
    rows::Rows,
    visit::{Asker, Visit},
};

/// The answer of the rule, with which the transaction commits, or the failure of a statement. A
/// refusal commits, too, because the visit may have ended a lease that ran out.
pub(super) type Decision<T> = sqlx::Result<Result<T, Error>>;

/// A request of an attempt.
pub(super) struct Acquisition {
    pub(super) asker: Asker,
    pub(super) request: AcquireRequest,
    /// The time to wait in the queue. `None` if the attempt leaves the queue.
    pub(super) wait: Option<Duration>,
}

impl Rows<'_> {
    /// One look. With a time to wait the attempt takes or keeps a place in the queue.
    pub(super) async fn acquire(&mut self, asked: &Acquisition) -> Decision<Reply> {
        let Acquisition {
            asker,
            request,
            wait,
        } = asked;
        let mut tokens = self.tokens();
        let look = |visit: &mut Visit| visit.acquire(request, wait.is_some(), &mut tokens);
        match (self.decide(asker, look).await?, wait) {
            (Ok(Reply::Queued { left, .. }), Some(wait)) => {
                self.enqueue(asker, *wait).await?;
                Ok(Ok(queued(left)))
            }
            (Ok(Reply::Granted(grant)), _) => {
                Ok(Ok(Reply::Granted(self.claimed(asked, grant).await?)))
            }
            (reply, _) => Ok(reply),
        }
    }

    /// Several leases, all or none. Waiters are bypassed. All requests have the same holder and
    /// attempt.
    pub(super) async fn acquire_together(
        &mut self,
        asked: &[Acquisition],
    ) -> Decision<Attempt<Vec<Grant>>> {
        let (mut visits, mut befores) = (Vec::new(), Vec::new());
        for one in asked {
            let (visit, before) = self.visit(&one.asker).await?;
            visits.push(visit);
            befores.push(before);
        }
        let requests: Vec<_> = asked.iter().map(|one| one.request.clone()).collect();
        let answer = Visit::acquire_together(&mut visits, &requests, &mut self.tokens());
        for ((one, before), visit) in asked.iter().zip(&befores).zip(&visits) {
            self.keep(&one.asker, before, visit).await?;
        }
        let Ok(Attempt::Granted(mut grants)) = answer else {
            return Ok(answer);
        };
        for (one, grant) in asked.iter().zip(&mut grants) {
            *grant = self.claimed(one, *grant).await?;
        }
        Ok(Ok(Attempt::Granted(grants)))
    }

    /// Ends the lease with this token. The asker knows only the name of the lease.
    pub(super) async fn force_release(
        &mut self,
        lease: &Asker,
        token: FencingToken,
    ) -> Decision<Forced> {
        if let Some(revocation) = self.revocation_of(&lease.lease, token).await? {
            return Ok(Ok(Forced::Ended { revocation }));
        }
        let mut tokens = self.tokens();
        let forced = self.decide(lease, |visit| visit.force_release(token, &mut tokens));
        let forced = forced.await?;
        if let Ok(Forced::Ended { revocation }) = forced {
            self.revoke(&lease.lease, token, revocation).await?;
        }
        Ok(forced)
    }

    /// Visits one lease, and writes the decision of the rule.
    pub(super) async fn decide<T>(
        &mut self,
        asker: &Asker,
        rule: impl FnOnce(&mut Visit) -> T,
    ) -> sqlx::Result<T> {
        let (mut visit, before) = self.visit(asker).await?;
        let answer = rule(&mut visit);
        self.keep(asker, &before, &visit).await?;
        Ok(answer)
    }

    fn tokens(&self) -> Tokens {
        Tokens::by_the_clock(Duration::from_micros(self.now.unsigned_abs()))
    }

    /// Raises the mark of the store in the same file, if the request asks for it.
    async fn claimed(&mut self, asked: &Acquisition, grant: Grant) -> sqlx::Result<Grant> {
        let AcquireRequest { attempt, claim, .. } = &asked.request;
        let (resource, holder) = (attempt.resource.as_str(), &asked.asker.holder);
        let Some(issuer) = claim else {
            return Ok(grant);
        };
        let claimed = self.claim(resource, holder, grant.token, issuer.as_str());
        Ok(grant.claimed(claimed.await?))
    }
}
