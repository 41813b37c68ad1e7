use std::{
    collections::{HashMap, hash_map::Entry},
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ProtocolVersion, PushInfo, PushKind, RedisError, RedisResult,
    aio::MultiplexedConnection,
};
use tokio::sync::Notify;
use tracing::debug;

use super::{Message, Reach, Registry, Service};
use crate::Error;

/// A listener that lost its connection waits this long before it makes another one.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// The task: listens as long as the backend lives, and starts over when the connection breaks.
pub(super) async fn listen(service: Arc<Service>, registry: Arc<Registry>, limit: Duration) {
    loop {
        while !registry.is_wanted() {
            registry.wanted.notified().await;
        }
        let Err(error) = hear(&service, &registry, limit).await;
        debug!(%error, "the connection for grants broke: waiters poll until it is back");
        registry.silence();
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}

impl Registry {
    fn is_wanted(&self) -> bool {
        let wanted = |shard: &super::Shard| shard.wanted.load(Ordering::Acquire);
        self.shards.iter().any(wanted)
    }

    /// The shards that are wanted and not subscribed to.
    fn missing(&self) -> Vec<u16> {
        let shards = (0_u16..).zip(&self.shards);
        shards
            .filter(|(_, shard)| {
                shard.wanted.load(Ordering::Acquire) && *shard.reach.borrow() == Reach::No
            })
            .map(|(number, _)| number)
            .collect()
    }
}

/// Subscribes to what is wanted until anything goes wrong with any of the servers.
async fn hear(
    service: &Service,
    registry: &Arc<Registry>,
    limit: Duration,
) -> Result<Infallible, Failure> {
    let broken = Arc::new(Notify::new());
    let mut connections = HashMap::new();
    loop {
        for shard in registry.missing() {
            let client = service.nodes.locate(shard).await.map_err(Failure::Locate)?;
            let connection =
                match connections.entry(client.get_connection_info().addr().to_string()) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => {
                        entry.insert(connect(client, registry, &broken, limit).await?)
                    }
                };
            let channel = service.keys.channel(shard, &registry.client);
            let reach = subscribe(connection, &channel).await?;
            registry.shards[usize::from(shard)]
                .reach
                .send_replace(reach);
        }
        tokio::select! {
            () = broken.notified() => return Err(Failure::Broken),
            () = registry.wanted.notified() => {}
        }
    }
}

/// A connection on which nothing is sent but subscriptions, one at a time: what comes in on it can
/// only be their answers, and grants.
async fn connect(
    client: Client,
    registry: &Arc<Registry>,
    broken: &Arc<Notify>,
    limit: Duration,
) -> RedisResult<MultiplexedConnection> {
    let info = client.get_connection_info().clone();
    let resp3 = info
        .redis_settings()
        .clone()
        .set_protocol(ProtocolVersion::RESP3);
    let client = Client::open(info.set_redis_settings(resp3))?;
    let (registry, broken) = (Arc::clone(registry), Arc::clone(broken));
    // Runs in the task that reads the connection, so that a grant wakes its waiter directly.
    let take = move |push: PushInfo| {
        match push.kind {
            // We never unsubscribe: another node has taken the shard over.
            PushKind::Disconnection | PushKind::SUnsubscribe => broken.notify_one(),
            _ => {
                if let Some(message) = Message::read(&push) {
                    registry.receive(message);
                }
            }
        }
        Ok::<_, Infallible>(())
    };
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(limit))
        .set_response_timeout(Some(limit))
        .set_push_sender(take);
    client
        .get_multiplexed_async_connection_with_config(&config)
        .await
}

/// One channel per command: the client library counts one answer for each.
async fn subscribe(connection: &mut MultiplexedConnection, channel: &str) -> RedisResult<Reach> {
    let mut command = redis::cmd("SSUBSCRIBE");
    let answer = command
        .arg(channel)
        .query_async::<redis::Value>(connection)
        .await;
    match answer {
        Ok(_) => Ok(Reach::Subscribed),
        Err(error) if error.is_io_error() || error.is_unrecoverable_error() => Err(error),
        // It belongs to another node: we learn to which by the next command.
        Err(error) if error.is_cluster_error() => Err(error),
        Err(error) => {
            debug!(%error, "no grants from this channel: its waiters poll");
            Ok(Reach::Denied)
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Locate(Error),
    #[error(transparent)]
    Redis(#[from] RedisError),
    #[error("it was closed")]
    Broken,
}
