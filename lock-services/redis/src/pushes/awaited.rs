use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use super::{News, Pushed};
use lock_core::backend::{AttemptId, support::lock};

/// The attempts of this process for which pushes may come.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    attempts: HashMap<AttemptId, (Arrival, Arc<Inbox>)>,
    by_shard: BTreeMap<Arrival, Arc<Inbox>>,
    arrivals: u64,
}

/// A shard, and the number of an attempt by its arrival.
type Arrival = (u16, u64);

impl Waiting {
    pub(super) fn enter(&mut self, attempt: AttemptId, shard: u16) -> Arc<Inbox> {
        // The first news is `Reach`, because the reach may have changed before the attempt was
        // added.
        let inbox = Arc::new(Inbox {
            unheard: Mutex::new(Some(News::Reach)),
            changed: Notify::new(),
        });
        let arrival = (shard, self.arrivals);
        self.arrivals += 1;
        self.attempts.insert(attempt, (arrival, Arc::clone(&inbox)));
        self.by_shard.insert(arrival, Arc::clone(&inbox));
        inbox
    }

    pub(super) fn leave(&mut self, attempt: AttemptId) {
        if let Some((arrival, _)) = self.attempts.remove(&attempt) {
            self.by_shard.remove(&arrival);
        }
    }

    /// Gives a push to its waiter. Returns false if the attempt does not wait.
    pub(super) fn give(&self, attempt: AttemptId, pushed: Pushed) -> bool {
        let waiter = self.attempts.get(&attempt);
        if let Some((_, inbox)) = waiter {
            inbox.put(News::Pushed(pushed));
        }
        waiter.is_some()
    }

    pub(super) fn has_some(&self, shard: u16) -> bool {
        self.of_shard(shard).next().is_some()
    }

    fn of_shard(&self, shard: u16) -> impl Iterator<Item = &Inbox> {
        let of_shard = self.by_shard.range((shard, 0)..=(shard, u64::MAX));
        of_shard.map(|(_, inbox)| &**inbox)
    }

    /// Gives the waiters of a shard the news that its reach has changed.
    pub(super) fn reach_changed(&self, shard: u16) {
        self.of_shard(shard)
            .for_each(|inbox| inbox.put(News::Reach));
    }
}

/// The news that one attempt has not heard yet.
#[derive(Debug)]
pub(super) struct Inbox {
    /// Never held across an await.
    unheard: Mutex<Option<News>>,
    changed: Notify,
}

impl Inbox {
    /// Adds news. A grant replaces the news that the reach has changed, and not the other way
    /// round.
    fn put(&self, news: News) {
        {
            let mut unheard = lock(&self.unheard);
            if !matches!((*unheard, news), (Some(News::Pushed(_)), News::Reach)) {
                *unheard = Some(news);
            }
        }
        self.changed.notify_one();
    }

    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn next(&self) -> News {
        loop {
            if let Some(news) = lock(&self.unheard).take() {
                return news;
            }
            self.changed.notified().await;
        }
    }
}
