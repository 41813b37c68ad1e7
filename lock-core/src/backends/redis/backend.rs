use std::sync::Arc;

use super::{
    ENDED_TTL, KIND, RedisOptions,
    keys::Keys,
    layout::Layout,
    nodes::Nodes,
    scripts::{CANCEL, INSPECT, Inspected, RELEASE, parse_cancelled, parse_released},
    wakeups::Wakeups,
};
use crate::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Capabilities, Clock, Error, ErrorKind,
    Fairness, Fencing, Grant, HolderView, InitialToken, Inspection, LockBackend, Operation,
    Released, RenewRequest, Renewed, ResourceName, Sequencer, Waking,
};

/// A lock service on one Redis server. Dropping it closes its connections.
#[derive(Debug)]
pub struct RedisBackend {
    pub(super) nodes: Nodes,
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
        url: &str,
        options: RedisOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        options.check()?;
        let keys = Keys::new(options.prefix.clone(), options.shards);
        let layout = Layout::new(&keys, options.shards);
        let nodes = Nodes::open(url, &options, layout).await?;
        let wakeups = Wakeups::start(nodes.clone(), options.response_timeout);
        Ok(Self {
            nodes,
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
        self.nodes
            .run(keys.shard, Operation::Cancel, &script, parse_cancelled)
            .await
            .map_err(|error| error.on(&attempt.resource))
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
        Box::pin(self.renew_all(leases))
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
                .nodes
                .run(keys.shard, Operation::Release, &script, parse_released)
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
            let keys = self.keys.of(resource);
            script.key(keys.lease());
            let inspected = self
                .nodes
                .run(keys.shard, Operation::Inspect, &script, Inspected::parse)
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

pub(super) fn broken_lease(operation: Operation) -> Error {
    Error::new(ErrorKind::Refused, operation, KIND)
        .because("the key of the lease holds something else")
}
