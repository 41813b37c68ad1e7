//! Who waits for which resource, and the subscriptions that wake them.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use redis::{Value, aio::ConnectionManager};
use tokio::sync::{Notify, mpsc, watch};
use tracing::debug;

/// The channels that somebody in this process listens to. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Wakeups {
    channels: Arc<Mutex<HashMap<Arc<str>, Channel>>>,
    orders: mpsc::UnboundedSender<Order>,
}

#[derive(Debug)]
struct Channel {
    /// Wakes one listener per message, in the order in which they came.
    free: Arc<Notify>,
    subscribed: watch::Receiver<bool>,
    listeners: usize,
}

/// Subscribing and unsubscribing is done by one task, in the order in which it was asked for.
#[derive(Debug)]
enum Order {
    Subscribe(Arc<str>, watch::Sender<bool>),
    Unsubscribe(Arc<str>),
}

/// The task that talks to the server for [`Wakeups`].
#[derive(Debug)]
pub(super) struct Subscriber(mpsc::UnboundedReceiver<Order>);

/// Listens to one channel until it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    channel: Arc<str>,
    free: Arc<Notify>,
    wakeups: Wakeups,
}

impl Wakeups {
    pub(super) fn new() -> (Self, Subscriber) {
        let (orders, receiver) = mpsc::unbounded_channel();
        (
            Self {
                channels: Arc::default(),
                orders,
            },
            Subscriber(receiver),
        )
    }

    /// Listens to a channel. When this returns, what is published from now on is heard, unless the
    /// connection breaks; so look once more before waiting, and never wait without a limit.
    pub(super) async fn listen(&self, channel: &str) -> Listener {
        let (listener, mut subscribed) = self.join(channel.into());
        // An error means that the connection is being closed, and the next command says so.
        drop(subscribed.wait_for(|subscribed| *subscribed).await);
        listener
    }

    /// A message has come in on this channel.
    pub(super) fn message(&self, channel: Option<&Value>) {
        let Some(Value::BulkString(name)) = channel else {
            return;
        };
        let Ok(name) = std::str::from_utf8(name) else {
            return;
        };
        if let Some(channel) = self.channels().get(name) {
            channel.free.notify_one();
        }
    }

    /// Messages may have been missed: everybody looks again.
    pub(super) fn all(&self) {
        for channel in self.channels().values() {
            channel.free.notify_waiters();
        }
    }

    fn join(&self, name: Arc<str>) -> (Listener, watch::Receiver<bool>) {
        let mut channels = self.channels();
        let channel = match channels.entry(Arc::clone(&name)) {
            Entry::Occupied(channel) => channel.into_mut(),
            Entry::Vacant(vacant) => {
                let (done, subscribed) = watch::channel(false);
                self.order(Order::Subscribe(Arc::clone(&name), done));
                vacant.insert(Channel {
                    free: Arc::default(),
                    subscribed,
                    listeners: 0,
                })
            }
        };
        channel.listeners += 1;
        let subscribed = channel.subscribed.clone();
        let free = Arc::clone(&channel.free);
        (
            Listener {
                channel: name,
                free,
                wakeups: self.clone(),
            },
            subscribed,
        )
    }

    fn leave(&self, name: &Arc<str>) {
        let mut channels = self.channels();
        let Some(channel) = channels.get_mut(name) else {
            return;
        };
        channel.listeners -= 1;
        if channel.listeners == 0 {
            channels.remove(name);
            self.order(Order::Unsubscribe(Arc::clone(name)));
        } else {
            // Whoever leaves may have been the one that was woken: the next one looks instead.
            channel.free.notify_one();
        }
    }

    fn order(&self, order: Order) {
        if self.orders.send(order).is_err() {
            debug!("the connection is being closed");
        }
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<Arc<str>, Channel>> {
        // Never held across an await, and no step under it panics between two changes.
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber {
    /// Starts the task. It ends when the last [`Wakeups`] is gone.
    pub(super) fn start(self, connection: ConnectionManager) {
        #[expect(
            clippy::disallowed_methods,
            reason = "ends when the last `Wakeups` is gone"
        )]
        drop(tokio::spawn(self.run(connection)));
    }

    async fn run(mut self, mut connection: ConnectionManager) {
        while let Some(order) = self.0.recv().await {
            let (done, result) = match order {
                Order::Subscribe(channel, done) => {
                    (Some(done), connection.subscribe(&*channel).await)
                }
                Order::Unsubscribe(channel) => (None, connection.unsubscribe(&*channel).await),
            };
            if let Err(error) = result {
                debug!(%error, "no push from this channel: its waiters poll");
            }
            if let Some(done) = done {
                done.send_replace(true);
            }
        }
    }
}

impl Listener {
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
        self.wakeups.leave(&self.channel);
    }
}
