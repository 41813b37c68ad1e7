use std::sync::Arc;

use redis::{RedisResult, ScriptInvocation, Value};
use url::Url;

use super::{
    ENDED_TTL, KIND, RedisOptions,
    connection::{Connection, client},
    error::translate,
    keys::Keys,
    layout::Layout,
    scripts::{
        CANCEL, INSPECT, Inspected, RELEASE, RENEW, RenewedWord, parse_cancelled, parse_released,
    },
    wakeups::Wakeups,
};
use crate::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Capabilities, Clock, Error, ErrorKind,
    Fairness, Fencing, Grant, HolderView, InitialToken, Inspection, Lease, LockBackend, Operation,
    Released, RenewRequest, Renewed, ResourceName, Sequencer, Waking,
};

/// A lock service on one Redis server. Dropping it closes its connections.
#[derive(Debug)]
pub struct RedisBackend {
    pub(super) connection: Connection,
    pub(super) wakeups: Wakeups,
    pub(super) keys: Keys,
    pub(super) initial: InitialToken,
    pub(super) clock: Arc<dyn Clock>,
}

impl RedisBackend {
    /// Connects, and agrees with the other clients on the layout of keys.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`], [`ErrorKind::Unavailable`], [`ErrorKind::Refused`], or
    /// [`ErrorKind::ConfigMismatch`] if others use this prefix with another layout.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: the connection is closed.
    pub async fn connect(
        url: &Url,
        options: RedisOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        options.check()?;
        let client = client(url, &options).map_err(|error| translate(error, Operation::Connect))?;
        let keys = Keys::new(options.prefix.clone(), options.shards);
        let layout = Layout::new(&keys, options.shards);
        let connection = Connection::open(client.clone(), &options, layout).await?;
        let wakeups = Wakeups::start(client, options.response_timeout);
        Ok(Self {
            connection,
            wakeups,
            keys,
            initial: options.initial_token,
            clock,
        })
    }

    /// Leaves a tombstone for an attempt, and gives back what it may have got.
    pub(super) async fn bury(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let (keys, digest) = (self.keys.of(&attempt.resource), attempt.holder.digest());
        let mut script = CANCEL.prepare_invoke();
        script
            .key(keys.lease())
            .key(keys.tombstone_of_attempt(&digest, attempt.id))
            .arg(digest)
            .arg(attempt.id.to_string())
            .arg(ENDED_TTL.as_millis().to_string())
            .arg(keys.channel());
        self.run(&script, Operation::Cancel, parse_cancelled)
            .await
            .map_err(|error| error.on(&attempt.resource))
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Result<Vec<Result<Renewed, Error>>, Error> {
        let mut script = RENEW.prepare_invoke();
        script.arg(ENDED_TTL.as_millis().to_string());
        for RenewRequest { sequencer, ttl } in leases {
            script
                .key(self.keys.of(sequencer.resource()).lease())
                .arg(sequencer.holder().digest())
                .arg(sequencer.token().get())
                .arg(ttl.as_millis());
        }
        let asked = self.clock.now();
        let parse = |answer| RenewedWord::parse_all(answer, leases.len());
        let words = self.run(&script, Operation::Renew, parse).await?;
        let answers = leases.iter().zip(words).map(|(request, word)| match word {
            RenewedWord::Renewed => Ok(Renewed::Renewed(Lease::counted_from(
                asked,
                request.ttl.get(),
            ))),
            RenewedWord::NotHolder => Ok(Renewed::NotHolder),
            RenewedWord::Broken => {
                Err(broken_lease(Operation::Renew).on(request.sequencer.resource()))
            }
        });
        Ok(answers.collect())
    }

    async fn run<T>(
        &self,
        script: &ScriptInvocation<'_>,
        operation: Operation,
        parse: impl FnOnce(Value) -> RedisResult<T>,
    ) -> Result<T, Error> {
        let link = self.connection.link(operation).await?;
        let answer = self.connection.run(&link, script, parse).await;
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
            let (keys, digest) = (self.keys.of(lease.resource()), lease.holder().digest());
            let mut script = RELEASE.prepare_invoke();
            script
                .key(keys.lease())
                .key(keys.tombstone(&digest))
                .arg(digest)
                .arg(lease.token().get())
                .arg(ENDED_TTL.as_millis().to_string())
                .arg(keys.channel());
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
        Box::pin(self.bury(attempt))
    }

    fn inspect<'a>(
        &'a self,
        resource: &'a ResourceName,
    ) -> BoxFuture<'a, Result<Inspection, Error>> {
        Box::pin(async move {
            let mut script = INSPECT.prepare_invoke();
            script.key(self.keys.of(resource).lease());
            let inspected = self
                .run(&script, Operation::Inspect, Inspected::parse)
                .await
                .map_err(|error| error.on(resource))?;
            match inspected {
                Inspected::Held {
                    token,
                    digest,
                    left,
                } => Ok(Inspection::new(Some(HolderView::of_digest(
                    &digest, token, left,
                )))),
                Inspected::Free => Ok(Inspection::new(None)),
                Inspected::Broken => Err(broken_lease(Operation::Inspect).on(resource)),
            }
        })
    }
}

fn broken_lease(operation: Operation) -> Error {
    Error::new(ErrorKind::Refused, operation, KIND)
        .because("the key of the lease holds something else")
}
