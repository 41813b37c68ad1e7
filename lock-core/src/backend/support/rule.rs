//! The rule of a lock service that decides in this process: in memory, and in an SQLite file.
//!
//! The lock service makes a [`Visit`] of all that it keeps about a resource and an acquisition.
//! [`LockBackend`](crate::backend::LockBackend) has the clauses that the rule follows. Afterwards
//! the lock service stores the contents of the visit: the lease, the ends, and the place in the
//! queue. It stores them after a refusal, too.

mod tokens;

use std::{cmp::max, time::Duration};

pub use self::tokens::Tokens;
use super::End;
use crate::{
    Attempt, Error, ErrorKind, FencingToken, Metadata, Released,
    backend::{AcquireRequest, Forced, Grant, Lease, Moment, Reply},
};

/// The time after which an attempt looks again if the lease is free but the attempt is not the
/// first in the queue.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// One request about one resource. Holders and attempts have the types in which the lock service
/// keeps them.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a lock service makes it")]
pub struct Visit<H, A> {
    /// The acquisition that the request is about.
    pub holder: H,
    /// The attempt of the acquisition. `None` stands for the whole acquisition.
    pub attempt: Option<A>,
    /// The present moment, by the clock by which the leases end.
    pub now: Moment,
    /// The moment from which the asker counts its lease.
    pub asked: Moment,
    /// The lease, if one lives.
    pub held: Option<Held<H, A>>,
    /// The greatest token of the resource, if each resource has its own counter.
    pub last_token: u64,
    /// Whether the acquisition or the attempt has ended.
    pub has_ended: bool,
    /// How the attempt has ended. If there is no attempt: how the acquisition has ended.
    pub end: Option<End>,
    /// The greatest number of attempts that may share a lease.
    pub most_holds: usize,
    /// The waiters, if the request is one to acquire.
    pub queue: QueueView,
    /// The acquisitions, and the attempts, that have ended in this visit.
    pub ends: Vec<(H, Option<A>, End)>,
    /// Whether the attempt has to get a place in the queue, or to keep it. Otherwise it leaves the
    /// queue.
    pub waits: bool,
}

/// A lease that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a lock service makes it")]
pub struct Held<H, A> {
    /// Its holder.
    pub holder: H,
    /// The attempts that got the lease in an answer. Each is a hold. The lease ends when no hold is
    /// left.
    pub attempts: Vec<A>,
    /// Its token.
    pub token: FencingToken,
    /// Its end.
    pub until: Moment,
    /// The note of its holder.
    pub metadata: Option<Metadata>,
}

/// The queue of a resource, as one acquisition sees it.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "a lock service makes it")]
pub struct QueueView {
    /// Another acquisition is the first in the queue.
    pub is_behind: bool,
    /// The acquisition is in the queue, with this attempt or another one.
    pub is_in: bool,
    /// The number of other acquisitions that wait.
    pub others: u64,
}

impl<H: Clone + PartialEq, A: Clone + PartialEq> Visit<H, A> {
    /// A visit of an acquisition, by a lock service that keeps nothing about it.
    #[must_use]
    pub fn new(holder: H, now: Moment) -> Self {
        Self {
            holder,
            attempt: None,
            now,
            asked: now,
            held: None,
            last_token: 0,
            has_ended: false,
            end: None,
            most_holds: usize::MAX,
            queue: QueueView::default(),
            ends: Vec::new(),
            waits: false,
        }
    }

    /// Looks once. With `queue` the attempt may wait.
    ///
    /// # Errors
    /// [`ErrorKind::Released`], [`ErrorKind::FloorImplausible`], [`ErrorKind::TokensExhausted`] or
    /// [`ErrorKind::QueueFull`].
    pub fn acquire(
        &mut self,
        request: &AcquireRequest,
        queue: bool,
        tokens: &mut Tokens,
    ) -> Result<Reply, Error> {
        self.check(request, tokens)?;
        let left = match self.left_to_another() {
            Some(left) => left,
            None if self.held.is_none() && self.queue.is_behind => SHORTEST_WAIT,
            None => {
                let lease = self.next_lease(request, tokens)?;
                return Ok(Reply::Granted(self.take(lease)));
            }
        };
        if !queue {
            return Ok(Reply::Held { left });
        }
        // An acquisition that waits already needs no further room in the queue for another attempt.
        let QueueView { is_in, others, .. } = self.queue;
        let most = request.max_waiters.map(u64::from);
        if !is_in && most.is_some_and(|most| others >= most) {
            return Err(Error::not_applied(ErrorKind::QueueFull));
        }
        self.waits = true;
        let look_again = left;
        Ok(Reply::Queued { left, look_again })
    }

    /// Looks once at several resources. All are decided before the first is granted.
    ///
    /// # Errors
    /// Those of [`acquire`](Visit::acquire).
    pub fn acquire_together(
        visits: &mut [Self],
        requests: &[AcquireRequest],
        tokens: &mut Tokens,
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        for (visit, request) in visits.iter().zip(requests) {
            visit.check(request, tokens)?;
        }
        if let Some(left) = visits.iter().filter_map(Self::left_to_another).max() {
            return Ok(Attempt::held(left));
        }
        let mut drawing = *tokens;
        let all = visits.iter().zip(requests);
        let leases = all.map(|(visit, request)| visit.next_lease(request, &mut drawing));
        let leases = leases.collect::<Result<Vec<_>, _>>()?;
        *tokens = drawing;
        let grants = visits.iter_mut().zip(leases);
        let grants = grants.map(|(visit, lease)| visit.take(lease));
        Ok(Attempt::Granted(grants.collect()))
    }

    /// Renews the lease with this token. Never moves its end nearer, because others may rely on it.
    pub fn renew(&mut self, token: FencingToken, ttl: Duration) -> bool {
        let until = self.now + ttl;
        let renewed = self.own(token).map(|own| own.until = max(own.until, until));
        renewed.is_some()
    }

    /// Ends the lease with this token, and the acquisition. The end may be left out if no copy of
    /// a request of this acquisition can still arrive.
    pub fn release(&mut self, token: FencingToken, tombstone: bool) -> Released {
        if self.own(token).is_none() {
            return self.released_before(token);
        }
        self.held = None;
        if tombstone {
            self.end_own(End::Released(token));
        }
        Released::Released
    }

    /// Gives back the hold of the attempt. The lease ends with its last hold.
    pub fn release_hold(&mut self, token: FencingToken) -> Released {
        if self.own(token).is_none() || !self.give_back() {
            return self.released_before(token);
        }
        self.end_own(End::Released(token));
        Released::Released
    }

    /// Ends the attempt.
    pub fn cancel(&mut self) {
        self.give_back();
        self.end_own(End::Over);
    }

    /// Ends the lease with this token, whatever its holder.
    ///
    /// # Errors
    /// [`ErrorKind::TokensExhausted`].
    pub fn force_release(
        &mut self,
        token: FencingToken,
        tokens: &mut Tokens,
    ) -> Result<Forced, Error> {
        let Some(held) = self.held.as_ref().filter(|held| held.token == token) else {
            return Ok(Forced::NotHeld);
        };
        let revocation = tokens.draw(self.last_token, None)?;
        self.ends.push((held.holder.clone(), None, End::Over));
        self.held = None;
        Ok(Forced::Ended { revocation })
    }

    /// Ends a lease that has run out, and its acquisition.
    pub fn end_lost(&mut self) {
        if let Some(lost) = self.held.take_if(|held| held.until <= self.now) {
            self.has_ended |= lost.holder == self.holder;
            self.ends.push((lost.holder, None, End::Over));
        }
    }

    fn check(&self, request: &AcquireRequest, tokens: &Tokens) -> Result<(), Error> {
        match self.has_ended {
            true => Err(Error::not_applied(ErrorKind::Released)),
            false => tokens.check_floor(request.floor),
        }
    }

    /// The time that is left of the lease of another holder.
    fn left_to_another(&self) -> Option<Duration> {
        let other = self.held.as_ref()?;
        (other.holder != self.holder).then(|| max(other.until.since(self.now), SHORTEST_WAIT))
    }

    /// The lease after this attempt got it: a new lease, or the lease that its acquisition already
    /// has.
    fn next_lease(
        &self,
        request: &AcquireRequest,
        tokens: &mut Tokens,
    ) -> Result<Held<H, A>, Error> {
        let mut lease = match &self.held {
            Some(own) => own.clone(),
            None => Held {
                holder: self.holder.clone(),
                attempts: Vec::new(),
                token: tokens.draw(self.last_token, request.floor)?,
                until: self.now + request.ttl.get(),
                metadata: request.metadata.clone(),
            },
        };
        if let Some(attempt) = &self.attempt
            && !lease.attempts.contains(attempt)
        {
            lease.attempts.push(attempt.clone());
        }
        match lease.attempts.len() > self.most_holds {
            true => Err(Error::not_applied(ErrorKind::QueueFull)),
            false => Ok(lease),
        }
    }

    fn take(&mut self, lease: Held<H, A>) -> Grant {
        let left = lease.until.since(self.now);
        let grant = Grant::new(lease.token, Lease::counted_from(self.asked, left));
        self.held = Some(lease);
        grant
    }

    /// The lease of the acquisition, if it has this token.
    fn own(&mut self, token: FencingToken) -> Option<&mut Held<H, A>> {
        let held = self.held.as_mut()?;
        (held.holder == self.holder && held.token == token).then_some(held)
    }

    /// Takes the hold of the attempt out of the lease of its acquisition. Returns whether there was
    /// one.
    fn give_back(&mut self) -> bool {
        let Some(own) = self.held.as_mut().filter(|held| held.holder == self.holder) else {
            return false;
        };
        let before = own.attempts.len();
        own.attempts
            .retain(|hold| Some(hold) != self.attempt.as_ref());
        let had_it = own.attempts.len() < before;
        if had_it && own.attempts.is_empty() {
            self.held = None;
        }
        had_it
    }

    fn end_own(&mut self, end: End) {
        self.ends
            .push((self.holder.clone(), self.attempt.clone(), end));
    }

    fn released_before(&self, token: FencingToken) -> Released {
        match self.end == Some(End::Released(token)) {
            true => Released::Released,
            false => Released::NotHolder,
        }
    }
}
