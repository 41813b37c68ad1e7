//! Who waits for which resource, and the subscriptions that wake them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::StreamExt;
use redis::{RedisResult, aio::PubSubSink};
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::timeout,
};
use tracing::debug;

use super::nodes::Nodes;

/// A subscriber that lost its connection waits this long before it makes another one.
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

/// The channels that somebody in this process listens to, and the task that subscribes to them.
///
/// One connection of its own; the task ends with this value.
#[derive(Debug)]
pub(super) struct Wakeups {
    wanted: Arc<Wanted>,
    subscriber: JoinHandle<()>,
}

/// What listeners and task share.
#[derive(Debug, Default)]
struct Wanted {
    channels: Mutex<Channels>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Channels {
    by_name: HashMap<Arc<str>, Channel>,
    /// The names that the task has to look at.
    touched: Vec<Arc<str>>,
}

#[derive(Debug)]
struct Channel {
    /// Wakes one listener per message, in the order in which they came.
    free: Arc<Notify>,
    subscribed: watch::Sender<bool>,
    listeners: usize,
}

/// Listens to one channel until it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    name: Arc<str>,
    free: Arc<Notify>,
    subscribed: watch::Receiver<bool>,
    wanted: Arc<Wanted>,
}

impl Wakeups {
    /// Starts the task; it connects when somebody listens.
    pub(super) fn start(nodes: Nodes, response_timeout: Duration) -> Self {
        let wanted = Arc::new(Wanted::default());
        let subscriber = subscribe(nodes, response_timeout, Arc::clone(&wanted));
        #[expect(
            clippy::disallowed_methods,
            reason = "aborted when this value is dropped"
        )]
        let subscriber = tokio::spawn(subscriber);
        Self { wanted, subscriber }
    }

    /// Listens to a channel. What is published is heard only after
    /// [`Listener::subscribed`], so look once more then, and never wait without a limit.
    pub(super) fn listen(&self, name: &str) -> Listener {
        let name: Arc<str> = name.into();
        let mut channels = self.wanted.channels();
        if !channels.by_name.contains_key(&name) {
            channels.touched.push(Arc::clone(&name));
            self.wanted.changed.notify_one();
        }
        let channel = channels
            .by_name
            .entry(Arc::clone(&name))
            .or_insert_with(Channel::new);
        channel.listeners += 1;
        Listener {
            free: Arc::clone(&channel.free),
            subscribed: channel.subscribed.subscribe(),
            wanted: Arc::clone(&self.wanted),
            name,
        }
    }
}

impl Drop for Wakeups {
    fn drop(&mut self) {
        self.subscriber.abort();
    }
}

impl Channel {
    fn new() -> Self {
        Self {
            free: Arc::default(),
            subscribed: watch::Sender::new(false),
            listeners: 0,
        }
    }
}

impl Wanted {
    fn channels(&self) -> MutexGuard<'_, Channels> {
        // Never held across an await, and no step under it panics between two changes.
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message has come in on this channel.
    fn message(&self, name: &str) {
        if let Some(channel) = self.channels().by_name.get(name) {
            channel.free.notify_one();
        }
    }

    fn leave(&self, name: &Arc<str>) {
        let mut channels = self.channels();
        let Some(channel) = channels.by_name.get_mut(name) else {
            return;
        };
        channel.listeners -= 1;
        if channel.listeners > 0 {
            // Whoever leaves may have been the one that was woken: the next one looks instead.
            channel.free.notify_one();
            return;
        }
        channels.by_name.remove(name);
        channels.touched.push(Arc::clone(name));
        self.changed.notify_one();
    }

    /// Nothing is heard any more, and something may have been missed: everybody looks again.
    fn silence(&self) {
        let mut channels = self.channels();
        let names = channels.by_name.keys().cloned().collect();
        channels.touched = names;
        for channel in channels.by_name.values() {
            channel.subscribed.send_replace(false);
            channel.free.notify_waiters();
        }
    }

    async fn until_someone_listens(&self) {
        while self.channels().by_name.is_empty() {
            self.changed.notified().await;
        }
    }
}

/// The task: hears as long as somebody listens, and starts over when the connection breaks.
async fn subscribe(nodes: Nodes, response_timeout: Duration, wanted: Arc<Wanted>) {
    loop {
        wanted.until_someone_listens().await;
        let Err(error) = hear(&nodes, response_timeout, &wanted).await;
        debug!(%error, "the connection for wake-ups broke: waiters poll until it is back");
        wanted.silence();
        tokio::time::sleep(RECONNECT_PAUSE).await;
    }
}

async fn hear(
    nodes: &Nodes,
    limit: Duration,
    wanted: &Wanted,
) -> RedisResult<std::convert::Infallible> {
    let client = nodes.locate(0).await.map_err(std::io::Error::other)?;
    let connected = timeout(limit, client.get_async_pubsub())
        .await
        .map_err(too_late)??;
    let (mut sink, mut messages) = connected.split();
    let mut subscribed = HashSet::new();
    loop {
        // One command per channel: the client library counts the answers to several wrongly, and
        // hands what is left over to whoever asks next.
        while let Some(name) = { wanted.channels().touched.pop() } {
            timeout(limit, reconcile(&mut sink, &name, &mut subscribed, wanted))
                .await
                .map_err(too_late)??;
        }
        tokio::select! {
            () = wanted.changed.notified() => {}
            message = messages.next() => match message {
                Some(message) => wanted.message(message.get_channel_name()),
                None => return Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()),
            },
        }
    }
}

/// Subscribes or unsubscribes, whichever is due.
async fn reconcile(
    sink: &mut PubSubSink,
    name: &Arc<str>,
    subscribed: &mut HashSet<Arc<str>>,
    wanted: &Wanted,
) -> RedisResult<()> {
    let is_wanted = wanted.channels().by_name.contains_key(name);
    if is_wanted && !subscribed.contains(name) {
        match sink.subscribe(&**name).await {
            Ok(()) => drop(subscribed.insert(Arc::clone(name))),
            Err(error) if error.is_io_error() || error.is_unrecoverable_error() => {
                return Err(error);
            }
            // Refused, as by an ACL: without pushes its waiters poll.
            Err(error) => debug!(%error, "no wake-ups from this channel"),
        }
    } else if !is_wanted && subscribed.remove(name) {
        sink.unsubscribe(&**name).await?;
    }
    if let Some(channel) = wanted.channels().by_name.get(name) {
        channel.subscribed.send_replace(true);
    }
    Ok(())
}

fn too_late(_: tokio::time::error::Elapsed) -> redis::RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

impl Listener {
    /// Completes when the channel is subscribed to, or cannot be.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn subscribed(&mut self) {
        // An error means that the backend is being dropped, and this future with it.
        drop(self.subscribed.wait_for(|subscribed| *subscribed).await);
    }

    /// Completes when the resource may be free.
    ///
    /// # Cancel safety
    /// Cancel safe: a wake-up that was not taken goes to the next listener.
    pub(super) async fn woken(&self) {
        self.free.notified().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.wanted.leave(&self.name);
    }
}
