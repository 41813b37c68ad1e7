//! Waiting for a lease: in the queue, with an ear open for the push that grants it.

use std::time::Duration;

use tokio::sync::watch;

use super::{
    RedisBackend,
    answers::RenewedWord,
    look::{Answer, Looking, Offer},
    pushes::{Place, Pushed, Reach},
};
use lock_core::{
    Attempt, Error, ErrorKind,
    backend::{AcquireRequest, Grant, Lease, Moment, Wait},
};

/// The first waiters look again after this time although nobody told them to. Those behind them
/// take longer for each place, up to [`POLL_MAX`]: only the first have to notice what goes wrong.
/// Ten thousand waiters ask 1000 times a second, which leaves the server to the hand-offs.
const POLL_FIRST: Duration = Duration::from_millis(300);
const POLL_PER_PLACE: Duration = Duration::from_millis(4);
/// Half of the time after which a place in the queue is forgotten.
const POLL_MAX: Duration = Duration::from_secs(15);

/// When a lease must have run out, the first waiter looks, and the others each so much later.
const STAGGER: Duration = Duration::from_millis(5);

/// How long a waiter goes without a place in the queue for the sake of being reachable.
const SUBSCRIBE_PATIENCE: Duration = Duration::from_secs(1);

impl RedisBackend {
    /// Acquires, and gives no answer that a request which is still under way could belie.
    pub(super) async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        let mut waiter = Waiter {
            looking: Looking::new(&self.service, request),
            backend: self,
            request,
            waits: false,
        };
        let answer = waiter.until_answered().await;
        let left_behind = waiter.looking.left_behind;
        let answer = answer
            .map(|attempt| attempt.map(|grant| grant.all_answered(waiter.looking.all_answered())));
        match answer {
            Ok(Attempt::Held { retry_after }) if left_behind => {
                let cancelled = self.service.cancel(&request.attempt).await;
                cancelled.map_err(Error::outcome_unknown)?;
                Ok(Attempt::Held { retry_after })
            }
            Err(error) if left_behind => Err(error.outcome_unknown()),
            Ok(Attempt::Granted(grant)) if waiter.waits => {
                Ok(Attempt::Granted(grant.after_waiting()))
            }
            answer => answer,
        }
    }
}

struct Waiter<'a> {
    backend: &'a RedisBackend,
    request: &'a AcquireRequest,
    looking: Looking<'a>,
    /// Somebody else had it when we first looked.
    waits: bool,
}

/// What happens first to somebody who asks and listens.
enum Event {
    Answer(Answer),
    Pushed(Pushed),
}

impl Waiter<'_> {
    async fn until_answered(&mut self) -> Result<Attempt<Grant>, Error> {
        let (pushes, shard) = (&self.backend.pushes, self.looking.shard());
        let mut reach = pushes.reach(shard);
        // Without a channel a place in the queue is worth little, and a channel takes a while: what
        // is free is granted without either.
        let never = self.request.wait == Wait::Never;
        while never || *reach.borrow() == Reach::No {
            match self.looking.ask(None).await? {
                Answer::Offer(offer) => match self.take(offer).await? {
                    Some(grant) => return Ok(Attempt::Granted(grant)),
                    None => continue,
                },
                Answer::Held { left, .. } if never => {
                    return Ok(Attempt::Held { retry_after: left });
                }
                Answer::Held { .. } => self.waits = true,
            }
            pushes.want(shard);
            self.until_reachable(&mut reach).await;
            break;
        }
        let mut place = pushes.enter(self.request.attempt.id);
        loop {
            let look_again = match self.next(&mut place, &mut reach).await? {
                Event::Pushed(pushed) => {
                    place.forget();
                    let offer = self.looking.offer_of(pushed);
                    match self.take(offer).await? {
                        Some(grant) => return Ok(Attempt::Granted(grant)),
                        None => continue,
                    }
                }
                Event::Answer(Answer::Offer(offer)) => {
                    if offer.provisional {
                        place.has_been_told(offer.token, offer.lease.deadline());
                    }
                    match self.take(offer).await? {
                        Some(grant) => return Ok(Attempt::Granted(grant)),
                        None => continue,
                    }
                }
                Event::Answer(Answer::Held { left, .. }) if self.is_over() => {
                    return Ok(Attempt::Held { retry_after: left });
                }
                Event::Answer(Answer::Held { left, place }) => self.now() + pause(left, place),
            };
            let look_again = std::cmp::min(look_again, self.deadline());
            self.waits = true;
            tokio::select! {
                // It stays there, to be taken in the next round.
                _ = place.pushed() => {}
                // An error means that the backend is being dropped, and this future with it.
                _ = reach.changed() => {}
                () = self.backend.service.clock.sleep_until(look_again) => {}
            }
        }
    }

    async fn until_reachable(&self, reach: &mut watch::Receiver<Reach>) {
        let patience = std::cmp::min(self.now() + SUBSCRIBE_PATIENCE, self.deadline());
        tokio::select! {
            // As above: an error means that the backend is being dropped.
            _ = reach.wait_for(|reach| *reach != Reach::No) => {}
            () = self.backend.service.clock.sleep_until(patience) => {}
        }
    }

    /// Asks, and listens meanwhile.
    async fn next(
        &mut self,
        place: &mut Place,
        reach: &mut watch::Receiver<Reach>,
    ) -> Result<Event, Error> {
        let client = match *reach.borrow_and_update() {
            Reach::Subscribed => self.backend.pushes.client(),
            Reach::No | Reach::Denied => "",
        };
        tokio::select! {
            biased;
            pushed = place.pushed() => {
                // The request that was under way may still arrive.
                self.looking.left_behind = true;
                self.waits = true;
                Ok(Event::Pushed(pushed))
            }
            answer = self.looking.ask(Some(client)) => answer.map(Event::Answer),
        }
    }

    /// What is offered becomes ours; `None` if it was gone by then, and we have to ask again. What
    /// was pushed is short until it is confirmed: nobody is told of it before.
    async fn take(&mut self, offer: Offer) -> Result<Option<Grant>, Error> {
        let Offer {
            token,
            lease,
            provisional,
        } = offer;
        if !provisional {
            return Ok(Some(Grant::new(token, lease)));
        }
        let now = self.now();
        if lease.deadline() <= now {
            return Ok(None);
        }
        let AcquireRequest { attempt, ttl, .. } = self.request;
        let service = &self.backend.service;
        let confirmed = service
            .confirm(
                &self.backend.renewals,
                &attempt.resource,
                self.looking.digest(),
                token,
                *ttl,
            )
            .await;
        match confirmed {
            Ok(RenewedWord::Renewed) => {
                let lease = Lease::counted_from(now, ttl.get());
                Ok(Some(Grant::new(token, lease)))
            }
            Ok(_) => Ok(None),
            // Asking again tells whether it was confirmed.
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok(None),
            Err(error) => Err(error.outcome_unknown()),
        }
    }

    fn is_over(&self) -> bool {
        self.now() >= self.deadline()
    }

    fn now(&self) -> Moment {
        self.backend.service.clock.now()
    }

    const fn deadline(&self) -> Moment {
        self.request.wait.limit()
    }
}

/// How long a waiter may trust that it would be told.
fn pause(left: Duration, place: u32) -> Duration {
    let poll = std::cmp::min(POLL_FIRST + POLL_PER_PLACE * place, POLL_MAX);
    // Not all at once.
    let poll = poll.mul_f64(rand::random_range(0.9..1.1));
    std::cmp::min(left + STAGGER * place, poll)
}
