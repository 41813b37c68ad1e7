//! The requests of one attempt, and the meaning of their answers.

use std::{
    cmp::min,
    sync::{Arc, Mutex, OnceLock},
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
    Error, ErrorKind,
    backend::{AcquireRequest, Grant, Lease, Moment, Reply, support::lock},
};

/// The first waiter looks again after this time even if no push has come. For each place behind it
/// the time is longer, up to [`POLL_MAX`], because only the first waiters have to notice a failure.
/// Ten thousand waiters together ask 1000 times a second, which leaves the server enough time for
/// the hand-offs.
const POLL_FIRST: Duration = Duration::from_millis(300);
const POLL_PER_PLACE: Duration = Duration::from_millis(4);
/// Half of the time after which a place in the queue is forgotten.
const POLL_MAX: Duration = Duration::from_secs(15);

/// When a lease must have run out, the first waiter looks. Each further waiter looks this much
/// later than the one before it.
const STAGGER: Duration = Duration::from_millis(5);

/// The looks of one attempt.
pub(super) struct Look<'a> {
    service: &'a Service,
    request: &'a AcquireRequest,
    attempt: Arc<Attempted>,
    /// The moment of the last request, and the server's clock in its answer. The time of a push is
    /// counted from these.
    exchange: Mutex<Option<(Moment, Duration)>>,
}

/// The data that all requests of one attempt share. A request may run on a task.
struct Attempted {
    service: Arc<Service>,
    request: AcquireRequest,
    shard: u16,
    /// The rest of the lease's text after the token.
    lease: String,
    first_sent: OnceLock<Moment>,
}

impl<'a> Look<'a> {
    pub(super) fn new(service: &'a Arc<Service>, request: &'a AcquireRequest) -> Self {
        Self {
            service,
            request,
            attempt: Arc::new(Attempted::new(service, request)),
            exchange: Mutex::default(),
        }
    }

    pub(super) fn shard(&self) -> u16 {
        self.attempt.shard
    }

    /// Looks once. With a client the attempt takes a place in the queue, and the server pushes to
    /// that client. The client "" stands for a client that no push reaches.
    ///
    /// A missing counter starts only after the layout was compared again. Another client may have
    /// set up a server that lost its data with another layout.
    ///
    /// # Cancel safety
    /// The request may have arrived, or arrive later.
    pub(super) async fn send(&self, client: Option<&str>) -> Result<Reply, Error> {
        let (mut start, mut has_left_something) = (false, false);
        let looked = loop {
            let (asked, answer) = match self.send_in_turn(client, start).await {
                Ok(answered) => answered,
                Err(error) => break Err(error),
            };
            has_left_something |= leaves_something(&answer, client.is_some());
            match answer {
                Acquired::More => {}
                Acquired::Refused(Refusal::Missing) if !start => {
                    if let Err(error) = self.service.nodes.agree().await {
                        break Err(error);
                    }
                    start = true;
                }
                answer => break self.read(answer, asked),
            }
        };
        looked.map_err(|error| match has_left_something {
            true => error.outcome_unknown(),
            false => error,
        })
    }

    /// Sends the request when it is its turn at the server. Returns the moment of sending, and the
    /// answer.
    async fn send_in_turn(
        &self,
        client: Option<&str>,
        start: bool,
    ) -> Result<(Moment, Acquired), Error> {
        let (attempt, service) = (Arc::clone(&self.attempt), self.service);
        let asker = client.map(|client| format!("{client}/{}", self.request.attempt.id));
        let request = async move { attempt.send(asker.as_deref(), start).await };
        let turns = service.nodes.turns(self.shard());
        turns.run(&service.tasks, request).await
    }

    fn read(&self, answer: Acquired, asked: Moment) -> Result<Reply, Error> {
        // Whatever the server's clock does, a lease is not longer than the requested ttl.
        let ttl = self.request.ttl.get();
        let grant = |token, left| Grant::new(token, Lease::counted_from(asked, min(left, ttl)));
        match answer {
            Acquired::AsAsked { token } => Ok(Reply::Granted(grant(token, ttl))),
            Acquired::Granted {
                token,
                left,
                provisional,
                new: _,
            } => Ok(match provisional {
                true => Reply::Offered(grant(token, left)),
                false => Reply::Granted(grant(token, left)),
            }),
            Acquired::Held { left } => Ok(Reply::Held { left }),
            Acquired::Waiting { left, at, place } => {
                *lock(&self.exchange) = Some((asked, at));
                let look_again = pause(left, place, self.service.runtime.dice());
                Ok(Reply::Queued { left, look_again })
            }
            Acquired::Full => Err(Error::not_applied(ErrorKind::QueueFull)),
            Acquired::Refused(refusal) => Err(refused(refusal)),
            // `send` goes on until the answer is another one.
            Acquired::More => Err(Error::not_applied(ErrorKind::Unavailable)),
        }
    }

    /// The offer of a push.
    ///
    /// The lease is counted from the time when the server granted it. An earlier answer with the
    /// server's time says when that was. Without such an answer the lease is counted from our first
    /// request. If the server's clock was set forward in between, the lease counts at most from the
    /// moment when the push arrived.
    ///
    /// A push that is older than the last answer offers nothing. The answer said that the attempt
    /// has nothing, so the grant had ended by then, and its push was delayed on the other
    /// connection. After the server's clock was set back, a fresh grant looks like such a push.
    /// Then the next poll finds the grant.
    pub(super) fn offer_of(&self, pushed: Pushed) -> Grant {
        let length = min(pushed.length, self.request.ttl.get());
        let (granted, length) = match *lock(&self.exchange) {
            Some((_, at)) if pushed.at < at => (pushed.received, Duration::ZERO),
            Some((asked, at)) => (asked + (pushed.at - at), length),
            None => {
                let first_sent = self.attempt.first_sent.get();
                (*first_sent.unwrap_or(&pushed.received), length)
            }
        };
        let counted_from = min(granted, pushed.received);
        Grant::new(pushed.token, Lease::counted_from(counted_from, length))
    }
}

impl Attempted {
    fn new(service: &Arc<Service>, request: &AcquireRequest) -> Self {
        Self {
            service: Arc::clone(service),
            request: request.clone(),
            shard: service.keys.shard(&request.attempt.resource),
            lease: lease_text::asked(request),
            first_sent: OnceLock::new(),
        }
    }

    async fn send(&self, asker: Option<&str>, start: bool) -> Result<(Moment, Acquired), Error> {
        let sent = self.service.runtime.now();
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
        let (keys, resource) = (&self.service.keys, &self.request.attempt.resource);
        let keys = keys.in_shard(self.shard, resource);
        let mut call = self.service.call(&ACQUIRE, &keys, link);
        // The end of a lease is 1 ms later than any client counts it.
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

/// Whether a part of an attempt is left at the server after this answer, unless it is given back.
const fn leaves_something(answer: &Acquired, queued: bool) -> bool {
    match answer {
        // A provisional lease may still become full although its caller has gone.
        Acquired::Granted { provisional, .. } => *provisional,
        Acquired::Waiting { .. } => true,
        // A place in the queue is kept, whatever the rest of the answer is.
        Acquired::More | Acquired::Refused(Refusal::Missing) => queued,
        Acquired::AsAsked { .. } | Acquired::Held { .. } => false,
        Acquired::Full | Acquired::Refused(_) => false,
    }
}

/// The time for which a waiter relies on pushes before it looks again.
fn pause(left: Duration, place: u32, dice: f64) -> Duration {
    let poll = min(POLL_FIRST + POLL_PER_PLACE * place, POLL_MAX);
    // The pauses are spread, so that waiters do not all ask at once.
    let poll = poll.mul_f64(0.9 + dice / 5.0);
    min(left + STAGGER * place, poll)
}

#[cfg(test)]
mod tests {
    use lock_core::FencingToken;

    use super::*;

    fn granted(provisional: bool) -> Acquired {
        Acquired::Granted {
            token: FencingToken::MIN,
            left: Duration::from_secs(1),
            provisional,
            new: false,
        }
    }

    /// Catches: an error that says "not applied", so that an attempt which still has a place in the
    /// queue is not cancelled.
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
