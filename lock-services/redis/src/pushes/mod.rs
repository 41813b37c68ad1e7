//! Grants that arrive without a request: the waiters in this process, and the task that listens for
//! them.
//!
//! A client has one channel per shard. It subscribes when a caller first waits in that shard, and
//! keeps the subscription for as long as the backend lives. A push names its attempt. A push for an
//! attempt that no longer waits is sent back, so that the queue goes on at once. Sending it back
//! has no effect if the answer to a poll overtook the push and had the same grant. In that case the
//! attempt has already confirmed its lease, which the server sees, or gives it back itself.

mod awaited;
mod listener;
mod pushed_grant;

use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::{Notify, mpsc};

use self::awaited::{Inbox, Waiting};
pub(super) use self::pushed_grant::Message;
use super::{
    servers::nodes::Nodes,
    service::{Service, Unwanted},
};
use lock_core::{
    FencingToken,
    backend::{
        AttemptId, Moment, Runtime,
        support::{OwnedTask, lock},
    },
};

/// Receives pushed grants. Its tasks end when it is dropped.
#[derive(Debug)]
pub(super) struct Pushes {
    registry: Arc<Registry>,
    _tasks: [OwnedTask; 2],
}

/// A grant that has arrived for an attempt of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pushed {
    pub(super) token: FencingToken,
    /// The time for which the holder may rely on the lease, counted from `at`.
    pub(super) length: Duration,
    /// The time of the server's clock when it granted the lease.
    pub(super) at: Duration,
    pub(super) received: Moment,
    /// Whether the lease is full. Otherwise it has to be confirmed.
    pub(super) is_whole: bool,
}

/// News for one attempt.
#[derive(Clone, Copy, Debug)]
pub(super) enum News {
    Pushed(Pushed),
    /// Whether pushes reach this process may have changed.
    Reach,
}

/// The reach of a shard's pushes. A break of the connection that has healed is a change, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) now: Reach,
    changes: u64,
}

/// Whether pushes of a shard reach this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reach {
    /// They do not: no attempt has waited in the shard yet, or the connection broke.
    #[default]
    No,
    Subscribed,
    /// They do not, and waiters poll, because the server refuses the channel, for example because
    /// of an ACL.
    Denied,
}

/// The state that waiters and tasks share.
#[derive(Debug)]
pub(super) struct Registry {
    /// The name of this client in its channels: 16 hex digits.
    client: String,
    runtime: Arc<dyn Runtime>,
    waiting: Mutex<Waiting>,
    shards: Box<[Shard]>,
    /// Notifies the task that a shard has become wanted.
    wanted: Notify,
    unwanted: mpsc::UnboundedSender<Unwanted>,
}

#[derive(Debug)]
struct Shard {
    reach: Mutex<Reached>,
    wanted: AtomicBool,
}

/// An attempt that waits: pushes for it arrive here until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    attempt: AttemptId,
    inbox: Arc<Inbox>,
    registry: Arc<Registry>,
}

impl Pushes {
    /// Starts the tasks. They connect when an attempt first waits.
    pub(super) fn start(
        service: Arc<Service>,
        renewals: Nodes,
        response_timeout: Duration,
    ) -> Self {
        let (unwanted, received) = mpsc::unbounded_channel();
        let shard = |_| Shard {
            reach: Mutex::default(),
            wanted: false.into(),
        };
        let registry = Arc::new(Registry {
            client: format!("{:016x}", service.runtime.random() >> 64),
            runtime: Arc::clone(&service.runtime),
            waiting: Mutex::default(),
            shards: (0..service.keys.shards()).map(shard).collect(),
            wanted: Notify::new(),
            unwanted,
        });
        let listener = listener::listen(
            Arc::clone(&service),
            renewals,
            Arc::clone(&registry),
            response_timeout,
        );
        let tasks = service.tasks.clone();
        let _tasks = [tasks.own(listener), tasks.own(send_back(service, received))];
        Self { registry, _tasks }
    }

    /// The name of this client in its channels.
    pub(super) fn client(&self) -> &str {
        self.registry.client()
    }

    /// Registers an attempt. This has to happen before the first request that takes a place in the
    /// queue.
    pub(super) fn enter(&self, attempt: AttemptId, shard: u16) -> Place {
        let inbox = self.registry.waiting().enter(attempt, shard);
        Place {
            attempt,
            inbox,
            registry: Arc::clone(&self.registry),
        }
    }

    /// Whether pushes of a shard arrive. Each change is [news](Place::news).
    pub(super) fn reach(&self, shard: u16) -> Reached {
        self.registry.shards[usize::from(shard)].reach()
    }

    /// The waiters of this process, if there are any in a shard.
    pub(super) fn waiters_in(&self, shard: u16) -> Option<Arc<Registry>> {
        let some_wait = self.registry.waiting().has_some(shard);
        some_wait.then(|| Arc::clone(&self.registry))
    }

    /// Makes the task subscribe to a shard's channel.
    pub(super) fn want(&self, shard: u16) {
        let wanted = &self.registry.shards[usize::from(shard)].wanted;
        if !wanted.swap(true, Ordering::AcqRel) {
            self.registry.wanted.notify_one();
        }
    }
}

impl Place {
    /// The next news.
    ///
    /// # Cancel safety
    /// Cancel safe: no news is lost.
    pub(super) async fn news(&self) -> News {
        self.inbox.next().await
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.registry.waiting().leave(self.attempt);
    }
}

impl Shard {
    fn reach(&self) -> Reached {
        *lock(&self.reach)
    }
}

impl Registry {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        lock(&self.waiting)
    }

    /// The name of this client in its channels.
    pub(super) fn client(&self) -> &str {
        &self.client
    }

    /// Gives a grant to its waiter.
    pub(super) fn receive(&self, message: Message, is_whole: bool) {
        let pushed = Pushed {
            token: message.token,
            length: message.length,
            at: message.at,
            received: self.runtime.now(),
            is_whole,
        };
        if self.waiting().give(message.attempt, pushed) {
            return;
        }
        // An error means that the backend is being dropped: the lease runs out by itself.
        drop(self.unwanted.send(Unwanted {
            lease: message.lease,
            digest: message.digest,
            attempt: message.attempt,
            token: message.token,
        }));
    }

    /// The shards that are wanted and not subscribed to.
    fn missing(&self) -> Vec<u16> {
        let shards = (0_u16..).zip(&self.shards);
        shards
            .filter(|(_, shard)| {
                shard.wanted.load(Ordering::Acquire) && shard.reach().now == Reach::No
            })
            .map(|(number, _)| number)
            .collect()
    }

    /// Makes all waiters of a shard ask again, because a grant may have been missed.
    pub(super) fn missed(&self, shard: u16) {
        lock(&self.shards[usize::from(shard)].reach).changes += 1;
        self.waiting().reach_changed(shard);
    }

    /// Notes that the reach of a shard's pushes has changed. If pushes do not arrive any more, some
    /// may have been missed, so all waiters of the shard ask again.
    fn reaches(&self, shard: u16, reach: Reach) {
        {
            let mut known = lock(&self.shards[usize::from(shard)].reach);
            if known.now == reach {
                return;
            }
            known.now = reach;
            known.changes += 1;
        }
        self.waiting().reach_changed(shard);
    }
}

/// The task that sends grants back whose attempts no longer wait.
async fn send_back(service: Arc<Service>, mut unwanted: mpsc::UnboundedReceiver<Unwanted>) {
    while let Some(grant) = unwanted.recv().await {
        if let Err(error) = service.send_back(&grant).await {
            tracing::debug!(%error, "a grant without a waiter runs out by itself");
        }
    }
}

#[cfg(test)]
mod tests {
    use lock_core::backend::TokioRuntime;

    use super::*;

    /// Catches: an attempt that was not polled while the channel broke waits for a lost push.
    #[test]
    fn a_break_that_has_healed_is_a_change() {
        let registry = Registry {
            client: String::new(),
            runtime: Arc::new(TokioRuntime),
            waiting: Mutex::default(),
            shards: Box::new([Shard {
                reach: Mutex::default(),
                wanted: false.into(),
            }]),
            wanted: Notify::new(),
            unwanted: mpsc::unbounded_channel().0,
        };
        registry.reaches(0, Reach::Subscribed);
        let before = registry.shards[0].reach();
        registry.reaches(0, Reach::Subscribed);
        assert_eq!(registry.shards[0].reach(), before);
        registry.reaches(0, Reach::No);
        registry.reaches(0, Reach::Subscribed);
        assert_ne!(registry.shards[0].reach(), before);

        let before = registry.shards[0].reach();
        registry.missed(0);
        assert_ne!(registry.shards[0].reach(), before);
    }
}
