use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{RedisResult, ScriptInvocation};
use url::Url;

use super::{
    ENDED_TTL, KIND, RedisOptions,
    connection::Connection,
    error::translate,
    keys::Keys,
    scripts::{
        ACQUIRE, Acquired, CANCEL, INSPECT, Inspected, RELEASE, RENEW, RenewedWord,
        parse_cancelled, parse_released,
    },
};
use crate::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Capabilities, Clock, Error, ErrorKind,
    Fairness, Fencing, FencingToken, Grant, HolderView, InitialToken, Inspection, Lease,
    LockBackend, Moment, Operation, Outcome, Released, RenewRequest, Renewed, ResourceName,
    Sequencer, Wait, Waking,
};

/// The version of keys and scripts, and what differs from it is not read.
const FORMAT: u32 = 1;

/// A waiter looks again after this time although nobody told it to.
const POLL_CAP: Duration = Duration::from_secs(1);

/// How long an acquire goes on asking a server that does not answer.
const OUTAGE_PATIENCE: Duration = Duration::from_secs(10);

const RETRY_FIRST: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_millis(500);

/// A lock service on one Redis server.
pub struct RedisBackend {
    connection: Connection,
    keys: Keys,
    config: String,
    initial: InitialToken,
    clock: Arc<dyn Clock>,
    /// Per shard, the connection on which its counter was lifted to the clock.
    raised: Vec<AtomicU64>,
}

impl RedisBackend {
    /// Connects, and agrees with the other clients on the layout of keys.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`], [`ErrorKind::Unavailable`], [`ErrorKind::Refused`], or
    /// [`ErrorKind::ConfigMismatch`] if others use this prefix with another layout.
    ///
    /// # Cancel safety
    /// Cancel safe: the connection is closed.
    pub async fn connect(
        url: &Url,
        options: RedisOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        options.check()?;
        let connection = Connection::open(url, &options).await?;
        let backend = Self {
            connection,
            keys: Keys::new(options.prefix, options.shards),
            config: format!("{FORMAT}:{}", options.shards),
            initial: options.initial_token,
            clock,
            raised: (0..options.shards).map(|_| AtomicU64::new(0)).collect(),
        };
        backend.agree(Operation::Connect).await?;
        Ok(backend)
    }

    /// Writes the configuration, or compares it with the one that is there.
    async fn agree(&self, operation: Operation) -> Result<(), Error> {
        let stored = self
            .connection
            .set_config(&self.keys.config(), &self.config)
            .await;
        match stored.map_err(|error| translate(error, operation))? {
            Some(stored) if stored != self.config => {
                let detail = format!(
                    "version:shards is {stored} there and {} here; use the same settings or \
                     another prefix",
                    self.config,
                );
                Err(Error::new(ErrorKind::ConfigMismatch, operation, KIND).because(detail))
            }
            _ => Ok(()),
        }
    }

    async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        let resource = &request.attempt.resource;
        let deadline = match request.wait {
            Wait::Never => return self.ask_patiently(request, Moment::default()).await,
            Wait::Until(moment) => moment,
            Wait::Forever => Moment::NEVER,
        };
        let first = self.ask_patiently(request, deadline).await?;
        if let Attempt::Granted(_) = first {
            return Ok(first);
        }
        let listener = self
            .connection
            .wakeups()
            .listen(&self.keys.channel(resource))
            .await;
        loop {
            let attempt = self.ask_patiently(request, deadline).await?;
            let Attempt::Held { retry_after } = attempt else {
                return Ok(attempt);
            };
            let now = self.clock.now();
            if now >= deadline {
                return Ok(attempt);
            }
            let look_again = now + std::cmp::min(retry_after, POLL_CAP);
            tokio::select! {
                () = listener.woken() => {}
                () = self.clock.sleep_until(std::cmp::min(look_again, deadline)) => {}
            }
        }
    }

    /// Asks until there is an answer: the request may be repeated, it names its acquisition.
    async fn ask_patiently(
        &self,
        request: &AcquireRequest,
        deadline: Moment,
    ) -> Result<Attempt<Grant>, Error> {
        let patience = std::cmp::min(deadline, self.clock.now() + OUTAGE_PATIENCE);
        let (mut pause, mut unknown, mut repeated) = (RETRY_FIRST, false, false);
        loop {
            let error = match self.ask(request).await {
                Ok(attempt) => return Ok(attempt),
                Err(error) => error,
            };
            unknown |= error.outcome() == Outcome::Unknown;
            let again = self.clock.now() + pause;
            let give_up = error.kind() != ErrorKind::Unavailable || (again >= patience && repeated);
            if give_up {
                let error = error.on(&request.attempt.resource);
                return Err(if unknown {
                    error.outcome_unknown()
                } else {
                    error
                });
            }
            self.clock.sleep_until(again).await;
            pause = std::cmp::min(pause * 2, RETRY_MAX);
            repeated = true;
        }
    }

    /// One look. A missing counter starts only after the configuration was compared again, because
    /// a server that lost it may have been set up differently by somebody else meanwhile.
    async fn ask(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        match self.ask_once(request, false).await? {
            Some(attempt) => Ok(attempt),
            None => {
                self.agree(Operation::Acquire).await?;
                self.ask_once(request, true).await?.ok_or_else(|| {
                    Error::new(ErrorKind::CounterBroken, Operation::Acquire, KIND)
                        .because("the counter cannot be started")
                })
            }
        }
    }

    /// `None` if the counter is missing and must not be started.
    async fn ask_once(
        &self,
        request: &AcquireRequest,
        start: bool,
    ) -> Result<Option<Attempt<Grant>>, Error> {
        let shard = self.keys.shard(&request.attempt.resource);
        let (generation, raised) = (
            self.connection.generation(),
            &self.raised[usize::from(shard)],
        );
        let raise =
            self.initial == InitialToken::Clock && raised.load(Ordering::Relaxed) != generation;
        let mut script = ACQUIRE.prepare_invoke();
        self.fill_in(&mut script, request, start, raise);
        let asked = self.clock.now();
        let answer = self.connection.run(&script).await.and_then(Acquired::parse);
        match answer.map_err(|error| translate(error, Operation::Acquire))? {
            Acquired::Granted { token, left } => {
                raised.store(generation, Ordering::Relaxed);
                let lease = Lease::counted_from(asked, left);
                Ok(Some(Attempt::Granted(Grant::new(token, lease))))
            }
            Acquired::Held { left } => Ok(Some(Attempt::Held { retry_after: left })),
            Acquired::Missing => Ok(None),
            refusal => Err(refused(refusal).on(&request.attempt.resource)),
        }
    }

    fn fill_in(
        &self,
        script: &mut ScriptInvocation<'_>,
        request: &AcquireRequest,
        start: bool,
        raise: bool,
    ) {
        let attempt = &request.attempt;
        let (origin, max_lead) = match self.initial {
            InitialToken::Clock => (
                "clock".to_owned(),
                InitialToken::clock_token(InitialToken::MAX_LEAD),
            ),
            InitialToken::At(token) => (token.to_string(), InitialToken::MAX_JUMP),
        };
        script
            .key(self.keys.lease(&attempt.resource))
            .key(self.keys.counter(self.keys.shard(&attempt.resource)))
            .key(self.keys.ended(&attempt.resource, attempt.holder))
            .key(self.keys.ended_attempt(attempt))
            .arg(attempt.holder.expose())
            .arg(attempt.id.to_string())
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
            .arg(FencingToken::MAX.get());
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Result<Vec<Result<Renewed, Error>>, Error> {
        let mut script = RENEW.prepare_invoke();
        for RenewRequest { sequencer, ttl } in leases {
            script
                .key(self.keys.lease(sequencer.resource()))
                .arg(sequencer.holder().expose())
                .arg(sequencer.token().get())
                .arg(ttl.as_millis());
        }
        let asked = self.clock.now();
        let words = self
            .run(&script, Operation::Renew, RenewedWord::parse_all)
            .await?;
        Ok(leases
            .iter()
            .zip(words)
            .map(|(request, word)| match word {
                RenewedWord::Renewed => Ok(Renewed::Renewed(Lease::counted_from(
                    asked,
                    request.ttl.get(),
                ))),
                RenewedWord::NotHolder => Ok(Renewed::NotHolder),
                RenewedWord::Broken => Err(Error::new(ErrorKind::Refused, Operation::Renew, KIND)
                    .on(request.sequencer.resource())
                    .because("the key of the lease holds something else")),
            })
            .collect())
    }

    async fn run<T>(
        &self,
        script: &ScriptInvocation<'_>,
        operation: Operation,
        parse: impl FnOnce(redis::Value) -> RedisResult<T>,
    ) -> Result<T, Error> {
        let answer = self.connection.run(script).await.and_then(parse);
        answer.map_err(|error| translate(error, operation))
    }
}

impl LockBackend for RedisBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::BestEffort, Fairness::None, Waking::Pushed)
    }

    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Attempt<Grant>, Error>> {
        Box::pin(self.acquire(request))
    }

    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>> {
        Box::pin(async move {
            match self.renew(leases).await {
                Ok(answers) => answers,
                Err(error) => leases
                    .iter()
                    .map(|lease| Err(error.clone().on(lease.sequencer.resource())))
                    .collect(),
            }
        })
    }

    fn release<'a>(&'a self, lease: &'a Sequencer) -> BoxFuture<'a, Result<Released, Error>> {
        Box::pin(async move {
            let mut script = RELEASE.prepare_invoke();
            script
                .key(self.keys.lease(lease.resource()))
                .key(self.keys.ended(lease.resource(), lease.holder()))
                .arg(lease.holder().expose())
                .arg(lease.token().get())
                .arg(ENDED_TTL.as_millis().to_string())
                .arg(self.keys.channel(lease.resource()));
            let ours = self
                .run(&script, Operation::Release, parse_released)
                .await
                .map_err(|error| error.on(lease.resource()))?;
            Ok(if ours {
                Released::Released
            } else {
                Released::NotHolder
            })
        })
    }

    fn cancel<'a>(&'a self, attempt: &'a AttemptRef) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let mut script = CANCEL.prepare_invoke();
            script
                .key(self.keys.lease(&attempt.resource))
                .key(self.keys.ended_attempt(attempt))
                .arg(attempt.holder.expose())
                .arg(attempt.id.to_string())
                .arg(ENDED_TTL.as_millis().to_string())
                .arg(self.keys.channel(&attempt.resource));
            self.run(&script, Operation::Cancel, parse_cancelled)
                .await
                .map_err(|error| error.on(&attempt.resource))
        })
    }

    fn inspect<'a>(
        &'a self,
        resource: &'a ResourceName,
    ) -> BoxFuture<'a, Result<Inspection, Error>> {
        Box::pin(async move {
            let mut script = INSPECT.prepare_invoke();
            script.key(self.keys.lease(resource));
            let inspected = self
                .run(&script, Operation::Inspect, Inspected::parse)
                .await
                .map_err(|error| error.on(resource))?;
            Ok(Inspection::new(match inspected {
                Inspected::Held {
                    token,
                    holder,
                    left,
                } => Some(HolderView::new(holder, token, left)),
                Inspected::Free => None,
            }))
        })
    }
}

impl fmt::Debug for RedisBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the address nor the connection: they may show a password.
        f.debug_struct("RedisBackend")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

fn refused(refusal: Acquired) -> Error {
    let (kind, why) = match refusal {
        Acquired::Implausible { greatest } => (
            ErrorKind::FloorImplausible,
            format!("at most {greatest} is plausible now"),
        ),
        Acquired::Exhausted => (ErrorKind::TokensExhausted, "use another prefix".to_owned()),
        Acquired::Broken { why } => (ErrorKind::CounterBroken, why),
        _ => return Error::new(ErrorKind::Released, Operation::Acquire, KIND),
    };
    Error::new(kind, Operation::Acquire, KIND).because(why)
}
