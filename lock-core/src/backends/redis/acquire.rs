//! Asking for a lease until there is an answer, or until the wait is over.

use std::time::Duration;

use redis::ScriptInvocation;

use super::{
    ENDED_TTL, KIND, RedisBackend,
    keys::ResourceKeys,
    link::Link,
    scripts::{ACQUIRE, Acquired},
};
use crate::{
    AcquireRequest, Attempt, Error, ErrorKind, FencingToken, Grant, InitialToken, Lease, Moment,
    Operation, Outcome, Wait,
};

/// A waiter looks again after this time although nobody told it to.
const POLL_CAP: Duration = Duration::from_secs(1);

/// How long an acquire that waits goes on asking a server that does not answer.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(10);

/// The same for one that does not wait: long enough for a new connection.
const OUTAGE_PATIENCE_WITHOUT_WAIT: Duration = Duration::from_millis(500);

/// How much longer than its wait an acquire stays for an answer that is under way.
const GRACE: Duration = Duration::from_millis(100);

const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_millis(500);

impl RedisBackend {
    /// Acquires, and gives no answer that a request which is still under way could belie.
    pub(super) async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        let mut asking = Asking {
            backend: self,
            request,
            unanswered: false,
        };
        let answer = asking.until_answered().await;
        let unanswered = asking.unanswered;
        match answer {
            // One of the requests was not answered and may still arrive: it must find a tombstone.
            Ok(Attempt::Held { retry_after }) if unanswered => {
                let buried = self.bury(&request.attempt).await;
                buried.map_err(Error::outcome_unknown)?;
                Ok(Attempt::Held { retry_after })
            }
            Err(error) if unanswered => Err(error.outcome_unknown()),
            answer => answer,
        }
    }

    /// One look. A missing counter starts only after the layout was compared again, because a
    /// server that lost it may have been set up differently by somebody else meanwhile.
    async fn look(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        if let Some(attempt) = self.look_once(request, false).await? {
            return Ok(attempt);
        }
        self.nodes.agree(Operation::Acquire).await?;
        self.look_once(request, true).await?.ok_or_else(|| {
            Error::new(ErrorKind::CounterBroken, Operation::Acquire, KIND)
                .because("it cannot be started")
        })
    }

    /// `None` if the counter is missing and must not be started.
    async fn look_once(
        &self,
        request: &AcquireRequest,
        start: bool,
    ) -> Result<Option<Attempt<Grant>>, Error> {
        let resource = &request.attempt.resource;
        let keys = self.keys.of(resource);
        let script = |link: &Link| {
            let raise = self.initial == InitialToken::Clock && link.must_raise(keys.shard);
            let mut script = ACQUIRE.prepare_invoke();
            self.fill_in(&mut script, &keys, request, start, raise);
            script
        };
        let asked = self.clock.now();
        let (link, answer) = self
            .nodes
            .run_with(keys.shard, Operation::Acquire, script, Acquired::parse)
            .await?;
        match answer {
            Acquired::Granted { token, left } => {
                link.has_raised(keys.shard);
                // Whatever the server's clock does, a lease is no longer than it was asked to be.
                let left = std::cmp::min(left, request.ttl.get());
                let lease = Lease::counted_from(asked, left);
                Ok(Some(Attempt::Granted(Grant::new(token, lease))))
            }
            Acquired::Held { left } => Ok(Some(Attempt::Held { retry_after: left })),
            Acquired::Missing => Ok(None),
            refusal => Err(refused(refusal).on(resource)),
        }
    }

    fn fill_in(
        &self,
        script: &mut ScriptInvocation<'_>,
        keys: &ResourceKeys<'_>,
        request: &AcquireRequest,
        start: bool,
        raise: bool,
    ) {
        let (digest, attempt) = (request.attempt.holder.digest(), request.attempt.id);
        let (origin, max_lead) = match self.initial {
            InitialToken::Clock => (
                "clock".to_owned(),
                InitialToken::clock_token(InitialToken::MAX_LEAD),
            ),
            InitialToken::At(token) => (token.to_string(), InitialToken::MAX_JUMP),
        };
        script
            .key(keys.lease())
            .key(keys.counter())
            .key(keys.tombstone(&digest))
            .key(keys.tombstone_of_attempt(&digest, attempt))
            .arg(digest)
            .arg(attempt.to_string())
            .arg(request.ttl.as_millis())
            .arg(
                request
                    .floor
                    .map(|floor| floor.to_string())
                    .unwrap_or_default(),
            )
            .arg(origin)
            .arg(u8::from(start))
            .arg(u8::from(raise))
            .arg(max_lead)
            .arg(FencingToken::MAX.get())
            .arg(ENDED_TTL.as_millis().to_string());
    }
}

/// One acquire, from its first request to its answer.
struct Asking<'a> {
    backend: &'a RedisBackend,
    request: &'a AcquireRequest,
    /// A request was sent and not answered: it may still arrive.
    unanswered: bool,
}

impl Asking<'_> {
    async fn until_answered(&mut self) -> Result<Attempt<Grant>, Error> {
        let first = self.ask().await?;
        if matches!(first, Attempt::Granted(_)) || self.request.wait == Wait::Never {
            return Ok(first);
        }
        let clock = &self.backend.clock;
        let channel = self
            .backend
            .keys
            .of(&self.request.attempt.resource)
            .channel();
        let mut listener = self.backend.wakeups.listen(&channel);
        tokio::select! {
            () = listener.subscribed() => {}
            () = clock.sleep_until(self.not_after(clock.now() + POLL_CAP)) => {}
        }
        loop {
            let attempt = self.ask().await?;
            let Attempt::Held { retry_after } = attempt else {
                return Ok(attempt);
            };
            let now = clock.now();
            if now >= self.deadline() {
                return Ok(attempt);
            }
            let look_again = now + std::cmp::min(retry_after, POLL_CAP);
            tokio::select! {
                () = listener.woken() => {}
                () = clock.sleep_until(self.not_after(look_again)) => {}
            }
        }
    }

    /// Asks until there is an answer: the request may be repeated, it names its acquisition.
    async fn ask(&mut self) -> Result<Attempt<Grant>, Error> {
        let clock = &self.backend.clock;
        let patience = match self.request.wait {
            Wait::Never => clock.now() + OUTAGE_PATIENCE_WITHOUT_WAIT,
            Wait::Until(_) | Wait::Forever => self.not_after(clock.now() + OUTAGE_PATIENCE),
        };
        let mut pause = RETRY_FIRST;
        loop {
            let error = match self.look_in_time().await {
                Ok(attempt) => return Ok(attempt),
                Err(error) => error,
            };
            self.unanswered |= error.outcome() == Outcome::Unknown;
            let again = clock.now() + pause;
            if error.kind() != ErrorKind::Unavailable || again >= patience {
                return Err(error.on(&self.request.attempt.resource));
            }
            clock.sleep_until(again).await;
            pause = std::cmp::min(pause * 2, RETRY_MAX);
        }
    }

    async fn look_in_time(&self) -> Result<Attempt<Grant>, Error> {
        let look = self.backend.look(self.request);
        let Wait::Until(deadline) = self.request.wait else {
            return look.await;
        };
        tokio::select! {
            biased;
            answer = look => answer,
            () = self.backend.clock.sleep_until(deadline + GRACE) => {
                Err(Error::new(ErrorKind::Unavailable, Operation::Acquire, KIND)
                    .because("no answer before the wait was over")
                    .outcome_unknown())
            }
        }
    }

    fn not_after(&self, moment: Moment) -> Moment {
        std::cmp::min(moment, self.deadline())
    }

    const fn deadline(&self) -> Moment {
        match self.request.wait {
            Wait::Until(moment) => moment,
            Wait::Never | Wait::Forever => Moment::NEVER,
        }
    }
}

fn refused(refusal: Acquired) -> Error {
    let error = |kind| Error::new(kind, Operation::Acquire, KIND);
    match refusal {
        Acquired::Implausible { greatest } => error(ErrorKind::FloorImplausible)
            .because(format!("at most {greatest} is plausible now")),
        Acquired::Exhausted => {
            error(ErrorKind::TokensExhausted).because("use another prefix, and seal the store")
        }
        Acquired::BrokenCounter { why } => error(ErrorKind::CounterBroken).because(why),
        Acquired::BrokenLease => {
            error(ErrorKind::Refused).because("the key of the lease holds something else")
        }
        _ => error(ErrorKind::Released),
    }
}
