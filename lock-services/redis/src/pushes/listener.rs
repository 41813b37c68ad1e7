use std::{
    collections::{BTreeSet, HashMap},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, ProtocolVersion, PushInfo, PushKind, RedisError, RedisResult,
    Value, aio::MultiplexedConnection,
};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use super::{Message, Reach, Registry, Service};
use crate::{
    error::meaning,
    servers::{link::breaks_connection, nodes::Nodes},
};
use lock_core::{Error, ErrorKind};

/// The pause after a failure until the next try.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// The task that listens. It subscribes to the wanted channels as long as the backend lives, on one
/// connection to each server that has some of them. When one connection breaks, the others go on.
pub(super) async fn listen(
    service: Arc<Service>,
    renewals: Nodes,
    registry: Arc<Registry>,
    limit: Duration,
) {
    let (events, mut happened) = mpsc::unbounded_channel();
    let mut listener = Listener {
        service,
        renewals,
        registry: Arc::clone(&registry),
        limit,
        events,
        connections: HashMap::new(),
        next: 0,
    };
    let mut moves = listener.service.nodes.moves();
    let runtime = Arc::clone(&listener.service.runtime);
    loop {
        let complete = listener.subscribe_to_missing().await;
        tokio::select! {
            biased;
            event = happened.recv() => match event {
                Some(event) => listener.handle(event),
                None => return,
            },
            () = registry.wanted.notified() => {}
            // An error means that the backend is gone, and this task ends soon.
            Ok(()) = moves.changed() => listener.leave_moved(),
            () = runtime.sleep(RECONNECT_PAUSE), if !complete => {}
        }
    }
}

struct Listener {
    service: Arc<Service>,
    renewals: Nodes,
    registry: Arc<Registry>,
    limit: Duration,
    events: mpsc::UnboundedSender<Event>,
    /// The connections, by the address of the server.
    connections: HashMap<String, Subscriptions>,
    /// The number of the next connection.
    next: u64,
}

/// A connection on which only subscriptions are sent, one at a time. So everything that arrives on
/// it is the answer to a subscription, or a grant.
struct Subscriptions {
    number: u64,
    server: Client,
    connection: MultiplexedConnection,
    /// Shards by channel.
    shards: HashMap<String, u16>,
    /// Whether the server has refused a channel, and that was logged.
    is_denied: bool,
}

/// An event of a connection, by its number.
enum Event {
    Closed(u64),
    /// The server does not send this channel any more, because another server has taken the shard
    /// over.
    Dropped(u64, String),
}

impl Listener {
    /// Subscribes to the channels that are missing. Returns false if some have to be tried again.
    async fn subscribe_to_missing(&mut self) -> bool {
        let mut failed = BTreeSet::new();
        let mut complete = true;
        for shard in self.registry.missing() {
            let server = match self.server_of(shard).await {
                Ok(server) => server,
                Err(error) => {
                    debug!(%error, shard, "no server for grants: waiters poll");
                    complete = false;
                    continue;
                }
            };
            let address = server.get_connection_info().addr().to_string();
            if failed.contains(&address) {
                continue;
            }
            match self.subscribe(server, &address, shard).await {
                Ok(reach) => self.registry.reaches(shard, reach),
                Err(error) => {
                    debug!(%error, shard, "no grants from this server: waiters poll");
                    self.service.nodes.learn(shard, &error);
                    complete = false;
                    if breaks_connection(&error) {
                        self.forget(&address);
                    }
                    if !error.is_cluster_error() {
                        failed.insert(address);
                    }
                }
            }
        }
        complete
    }

    /// The server that pushes the grants of a shard.
    async fn server_of(&self, shard: u16) -> Result<Client, Error> {
        let nodes = &self.service.nodes;
        // The server of one shard has all shards, so sentinels need not be asked for each shard.
        match self.connections.values().next() {
            Some(only) if nodes.shards_share_scripts() => Ok(only.server.clone()),
            _ => nodes.locate(shard).await,
        }
    }

    /// Subscribes to a channel. There is one channel per command, because the client library
    /// expects one answer for each command.
    async fn subscribe(&mut self, server: Client, address: &str, shard: u16) -> RedisResult<Reach> {
        if !self.connections.contains_key(address) {
            let renewals = self.renewals.clone();
            let (subscriptions, ready) = tokio::join!(
                self.connect(server),
                // A pushed lease is short. Over a slow network its first renewal would come too
                // late if the client had to connect first.
                renewals.link_of(shard),
            );
            if let Err(error) = ready {
                debug!(%error, "no connection for renewals yet");
            }
            let subscriptions = subscriptions?;
            self.connections.insert(address.to_owned(), subscriptions);
        }
        let Some(subscriptions) = self.connections.get_mut(address) else {
            return Ok(Reach::No);
        };
        let channel = self.service.keys.channel(shard, &self.registry.client);
        let mut command = redis::cmd("SSUBSCRIBE");
        let answer = command
            .arg(&channel)
            .query_async::<Value>(&mut subscriptions.connection)
            .await;
        match answer {
            Ok(_) => {
                subscriptions.shards.insert(channel, shard);
                Ok(Reach::Subscribed)
            }
            Err(error) if breaks_connection(&error) || passes(&error) => Err(error),
            // The server refuses the channel, for example because of an ACL.
            Err(error) => {
                if subscriptions.is_denied {
                    debug!(%error, channel, "no grants from this channel, either");
                } else {
                    warn!(
                        %error,
                        channel,
                        "the server refuses a channel, so waiters poll and get a lease later: give \
                         this user the command ssubscribe and the channels of palisade::redis, \
                         Rights"
                    );
                }
                subscriptions.is_denied = true;
                subscriptions.shards.insert(channel, shard);
                Ok(Reach::Denied)
            }
        }
    }

    async fn connect(&mut self, server: Client) -> RedisResult<Subscriptions> {
        let info = server.get_connection_info().clone();
        let resp3 = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let resp3 = Client::open(info.set_redis_settings(resp3))?;
        let number = self.next;
        self.next += 1;
        let (registry, events) = (Arc::clone(&self.registry), self.events.clone());
        // This closure runs in the task that reads the connection, so that a grant wakes its waiter
        // directly.
        let take = move |push: PushInfo| {
            let event = match push.kind {
                PushKind::Disconnection => Some(Event::Closed(number)),
                // This client never unsubscribes, so the server has dropped the channel.
                PushKind::SUnsubscribe => channel(push).map(|name| Event::Dropped(number, name)),
                _ => {
                    if let Some(message) = Message::of_push(&push) {
                        registry.receive(message, false);
                    }
                    None
                }
            };
            if let Some(event) = event {
                // An error means that the listener is gone.
                drop(events.send(event));
            }
            Ok::<_, Infallible>(())
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.limit))
            .set_response_timeout(Some(self.limit))
            .set_push_sender(take);
        let connection = resp3
            .get_multiplexed_async_connection_with_config(&config)
            .await?;
        Ok(Subscriptions {
            number,
            server,
            connection,
            shards: HashMap::new(),
            is_denied: false,
        })
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Closed(number) => {
                let mut connections = self.connections.iter();
                let closed = connections.find(|(_, its)| its.number == number);
                if let Some(address) = closed.map(|(address, _)| address.clone()) {
                    debug!(address, "the connection for grants broke: waiters poll");
                    self.forget(&address);
                }
            }
            Event::Dropped(number, channel) => {
                let mut connections = self.connections.values_mut();
                let its = connections.find(|its| its.number == number);
                if let Some(shard) = its.and_then(|its| its.shards.remove(&channel)) {
                    self.registry.reaches(shard, Reach::No);
                }
            }
        }
    }

    /// Leaves the channels that another server has taken over.
    fn leave_moved(&mut self) {
        for (address, its) in &mut self.connections {
            its.shards.retain(|_, shard| {
                let serves = self.service.nodes.serves(*shard, address);
                if !serves {
                    self.registry.reaches(*shard, Reach::No);
                }
                serves
            });
        }
        self.connections.retain(|_, its| !its.shards.is_empty());
    }

    /// Closes the connection to a server.
    fn forget(&mut self, address: &str) {
        let Some(subscriptions) = self.connections.remove(address) else {
            return;
        };
        for shard in subscriptions.shards.into_values() {
            self.registry.reaches(shard, Reach::No);
        }
    }
}

/// Whether the next try may succeed.
fn passes(error: &RedisError) -> bool {
    error.is_cluster_error() || meaning(error).0 == ErrorKind::Unavailable
}

fn channel(push: PushInfo) -> Option<String> {
    match push.data.into_iter().next()? {
        Value::BulkString(name) => String::from_utf8(name).ok(),
        Value::SimpleString(name) => Some(name),
        _ => None,
    }
}
