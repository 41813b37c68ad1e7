//! One acquisition's requests, and what their answers mean.

use std::{
    future::pending,
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::{
    ENDED_TTL,
    answers::{Acquired, Refusal},
    call::Call,
    lease_text,
    pushes::Pushed,
    scripts::ACQUIRE,
    servers::link::Link,
    service::{Service, refused},
};
use lock_core::{
    Error, ErrorKind, FencingToken, Outcome,
    backend::{AcquireRequest, Lease, Moment, Wait, support::Patience},
};

/// How long a look has for its answer, even if the wait is over before: longer than it takes around
/// the world and back. Without an answer it could not say that it holds nothing.
const GRACE: Duration = Duration::from_millis(500);

/// Sends the requests of one attempt and remembers what they leave behind.
pub(super) struct Looking<'a> {
    service: &'a Service,
    request: &'a AcquireRequest,
    attempt: Arc<Attempted>,
    /// When we asked, and the server's clock in the answer: what the time of a push is set against.
    exchange: Option<(Moment, Duration)>,
    /// The server may have something of this attempt: a place in the queue, or what a request
    /// without an answer is going to do.
    pub(super) left_behind: bool,
    /// A request is under way, or its caller has dropped it.
    under_way: bool,
    /// A request had no answer.
    unanswered: bool,
}

/// What all requests of one attempt have in common. A request may run on a task.
struct Attempted {
    service: Arc<Service>,
    request: AcquireRequest,
    shard: u16,
    digest: String,
    id: String,
    /// What follows the token in the lease.
    lease: String,
    first_sent: OnceLock<Moment>,
}

/// What the server says.
pub(super) enum Answer {
    Offer(Offer),
    /// Somebody stands in the way for at most so long, and so many are before us.
    Held {
        left: Duration,
        place: u32,
    },
}

/// A grant, as the server sees it.
pub(super) struct Offer {
    pub(super) token: FencingToken,
    pub(super) lease: Lease,
    /// It is short, and has to be confirmed.
    pub(super) provisional: bool,
}

impl<'a> Looking<'a> {
    pub(super) fn new(service: &'a Arc<Service>, request: &'a AcquireRequest) -> Self {
        Self {
            service,
            request,
            attempt: Arc::new(Attempted::new(service, request)),
            exchange: None,
            left_behind: false,
            under_way: false,
            unanswered: false,
        }
    }

    /// Whether no request of this attempt can arrive later.
    pub(super) const fn all_answered(&self) -> bool {
        !self.unanswered && !self.under_way
    }

    pub(super) fn shard(&self) -> u16 {
        self.attempt.shard
    }

    pub(super) fn digest(&self) -> &str {
        &self.attempt.digest
    }

    /// Asks until there is an answer: a request may be repeated, it names its acquisition. With a
    /// client it takes a place in the queue, and that client is told; "" is one that cannot be
    /// told.
    ///
    /// # Cancel safety
    /// The request may have arrived, or arrive later.
    pub(super) async fn ask(&mut self, client: Option<&str>) -> Result<Answer, Error> {
        self.unanswered |= self.under_way;
        let mut patience = Patience::of(self.request.wait, self.service.clock.now());
        let mut grace = GRACE;
        loop {
            self.under_way = true;
            let answer = self.look_in_time(client, grace).await;
            self.under_way = false;
            let error = match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let unknown = error.outcome() == Outcome::Unknown;
            self.unanswered |= unknown;
            self.left_behind |= unknown;
            if !patience.another(&*self.service.clock, &error).await {
                return Err(error.on(&self.request.attempt.resource));
            }
            // Nothing tells that the server answers at all.
            grace = Duration::ZERO;
        }
    }

    /// One look, which gets so much time for its answer even if the wait is over before.
    async fn look_in_time(
        &mut self,
        client: Option<&str>,
        grace: Duration,
    ) -> Result<Answer, Error> {
        let service = self.service;
        let Wait::Until(deadline) = self.request.wait else {
            return self.look(client).await;
        };
        let until = std::cmp::max(deadline, service.clock.now() + grace);
        tokio::select! {
            biased;
            answer = self.look(client) => answer,
            () = service.clock.sleep_until(until) => {
                // It may have waited for its turn all the time.
                let error = match self.attempt.first_sent.get() {
                    Some(_) => Error::unknown,
                    None => Error::not_applied,
                };
                Err(error(ErrorKind::Unavailable)
                    .because("no answer before the wait was over"))
            }
        }
    }

    /// One look. A missing counter starts only after the layout was compared again, because a
    /// server that lost it may have been set up differently by somebody else meanwhile.
    async fn look(&mut self, client: Option<&str>) -> Result<Answer, Error> {
        let mut start = false;
        loop {
            let (asked, answer) = self.send_in_turn(client, start).await?;
            self.left_behind |= leaves_something(&answer, client.is_some());
            match answer {
                Acquired::More => {}
                Acquired::Refused(Refusal::Missing) if !start => {
                    self.service.nodes.agree().await?;
                    start = true;
                }
                answer => return self.read(answer, asked),
            }
        }
    }

    /// Sends when it is this one's turn at the server. Returns when that was, and the answer.
    async fn send_in_turn(
        &self,
        client: Option<&str>,
        start: bool,
    ) -> Result<(Moment, Acquired), Error> {
        let (attempt, service) = (Arc::clone(&self.attempt), self.service);
        let asker = client.map(|client| format!("{client}/{}", attempt.id));
        let too_long = attempt.waits_too_long();
        let request = async move { attempt.send(asker.as_deref(), start).await };
        let turns = service.nodes.turns(self.shard());
        turns.run(&service.tasks, too_long, request).await
    }

    fn read(&mut self, answer: Acquired, asked: Moment) -> Result<Answer, Error> {
        match answer {
            Acquired::AsAsked { token } => Ok(Answer::Offer(Offer {
                token,
                lease: Lease::counted_from(asked, self.request.ttl.get()),
                provisional: false,
            })),
            Acquired::Granted {
                token,
                left,
                provisional,
                new: _,
            } => {
                // Whatever the server's clock does, a lease is no longer than it was asked to be.
                let left = std::cmp::min(left, self.request.ttl.get());
                Ok(Answer::Offer(Offer {
                    token,
                    lease: Lease::counted_from(asked, left),
                    provisional,
                }))
            }
            Acquired::Held { left } => Ok(Answer::Held { left, place: 0 }),
            Acquired::Waiting { left, at, place } => {
                self.exchange = Some((asked, at));
                Ok(Answer::Held { left, place })
            }
            Acquired::Full => Err(Error::not_applied(ErrorKind::QueueFull)),
            Acquired::Refused(refusal) => Err(refused(refusal)),
            // `look` goes on until there is something else.
            Acquired::More => Err(Error::not_applied(ErrorKind::Unavailable)),
        }
    }

    /// What a push offers.
    ///
    /// Its lease is counted from when the server granted it, which we know from an earlier answer
    /// that told the server's time; or else from our first request. A server whose clock was set
    /// forward meanwhile makes it no longer than if it had been granted when the push arrived.
    ///
    /// An answer said that we have nothing. What was granted before that was over by then, and its
    /// push was held up on the other connection. After a server's clock was set back a fresh grant
    /// looks the same: then the next poll tells.
    pub(super) fn offer_of(&self, pushed: Pushed) -> Offer {
        let length = std::cmp::min(pushed.length, self.request.ttl.get());
        let (granted, length) = match self.exchange {
            Some((_, at)) if pushed.at < at => (pushed.received, Duration::ZERO),
            Some((asked, at)) => (asked + (pushed.at - at), length),
            None => (self.attempt.first_sent().unwrap_or(pushed.received), length),
        };
        let counted_from = std::cmp::min(granted, pushed.received);
        Offer {
            token: pushed.token,
            lease: Lease::counted_from(counted_from, length),
            provisional: true,
        }
    }
}

impl Attempted {
    fn new(service: &Arc<Service>, request: &AcquireRequest) -> Self {
        let (digest, id) = (
            request.attempt.holder.digest(),
            request.attempt.id.to_string(),
        );
        Self {
            service: Arc::clone(service),
            request: request.clone(),
            shard: service.keys.of(&request.attempt.resource).shard,
            lease: lease_text::asked(request),
            digest,
            id,
            first_sent: OnceLock::new(),
        }
    }

    fn first_sent(&self) -> Option<Moment> {
        self.first_sent.get().copied()
    }

    /// One that does not wait for others waits only so long for its turn.
    fn waits_too_long(&self) -> impl Future<Output = Error> + Send + use<> {
        let never = self.request.wait == Wait::Never;
        let clock = Arc::clone(&self.service.clock);
        async move {
            if !never {
                return pending().await;
            }
            clock.sleep_until(clock.now() + Patience::SHORT).await;
            Error::not_applied(ErrorKind::Unavailable)
                .because("too many acquires of this process wait for answers of the server")
        }
    }

    async fn send(&self, asker: Option<&str>, start: bool) -> Result<(Moment, Acquired), Error> {
        let sent = self.service.clock.now();
        self.first_sent.get_or_init(|| sent);
        let fill_in = |link: &Link| self.fill_in(link, asker, start);
        let nodes = &self.service.nodes;
        let (link, answer) = nodes.run_with(self.shard, fill_in, Acquired::parse).await?;
        // A replay draws no token, and lifts no counter.
        if matches!(answer, Acquired::Granted { new: true, .. }) {
            link.has_raised(self.shard, sent);
        }
        Ok((sent, answer))
    }

    fn fill_in(&self, link: &Link, asker: Option<&str>, start: bool) -> Call {
        let AcquireRequest {
            ttl,
            floor,
            max_waiters,
            ..
        } = self.request;
        let keys = self.service.keys.of(&self.request.attempt.resource);
        let mut call = self.service.call(&ACQUIRE, &keys, link);
        // The end of a lease is 1 ms later than anybody is told.
        let stay = u128::from(ttl.as_millis()) + 1 + ENDED_TTL.as_millis();
        call.arg(&self.lease).arg(stay).rare_args([
            asker.map(str::to_owned),
            floor.map(|floor| floor.to_string()),
            start.then(|| 1.to_string()),
            max_waiters.map(|most| most.to_string()),
        ]);
        call
    }
}

/// Whether the server has something of an attempt after this answer, unless it is given back.
const fn leaves_something(answer: &Acquired, queued: bool) -> bool {
    match answer {
        // It may be confirmed without anybody hearing of it.
        Acquired::Granted { provisional, .. } => *provisional,
        Acquired::Waiting { .. } => true,
        // A place in the queue is kept, whatever becomes of the rest.
        Acquired::More | Acquired::Refused(Refusal::Missing) => queued,
        Acquired::AsAsked { .. } | Acquired::Held { .. } => false,
        Acquired::Full | Acquired::Refused(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(provisional: bool) -> Acquired {
        Acquired::Granted {
            token: FencingToken::MIN,
            left: Duration::from_secs(1),
            provisional,
            new: false,
        }
    }

    /// Catches: an error says "not applied", so nobody cancels an attempt that still stands in
    /// line.
    #[test]
    fn an_attempt_that_may_be_left_at_the_server_is_never_said_not_to_be_applied() {
        let waiting = Acquired::Waiting {
            left: Duration::ZERO,
            at: Duration::ZERO,
            place: 0,
        };
        assert!(leaves_something(&waiting, true));
        for answer in [Acquired::More, Acquired::Refused(Refusal::Missing)] {
            assert!(leaves_something(&answer, true), "it was queued");
            assert!(!leaves_something(&answer, false));
        }
        assert!(
            leaves_something(&granted(true), false),
            "it may be confirmed"
        );
        assert!(!leaves_something(&granted(false), true));
        let held = Acquired::Held {
            left: Duration::ZERO,
        };
        assert!(!leaves_something(&held, false));
    }
}
