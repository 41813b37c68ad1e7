use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use super::{News, Pushed};
use lock_core::{
    FencingToken,
    backend::{AttemptId, Moment, support::lock},
};

/// The attempts of this process that pushes may be for.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    attempts: HashMap<AttemptId, Attempt>,
    /// When memories may be forgotten. A provisional lease is short, and so is this.
    memories: VecDeque<(Moment, AttemptId)>,
}

#[derive(Debug)]
enum Attempt {
    Waits {
        shard: u16,
        inbox: Arc<Inbox>,
    },
    /// Waits no longer: an answer had this grant, which is not confirmed yet. Its push may still be
    /// under way.
    WasTold(FencingToken, Moment),
}

impl Waiting {
    pub(super) fn enter(&mut self, attempt: AttemptId, shard: u16) -> Arc<Inbox> {
        // The reach may have changed before the attempt came here.
        let inbox = Arc::new(Inbox {
            unheard: Mutex::new(Some(News::Reach)),
            changed: Notify::new(),
        });
        let waits = Attempt::Waits {
            shard,
            inbox: Arc::clone(&inbox),
        };
        self.attempts.insert(attempt, waits);
        inbox
    }

    /// It waits no longer. A grant from an answer is remembered until its lease must have run out:
    /// if the lease is still there then, it has been confirmed.
    pub(super) fn leave(
        &mut self,
        attempt: AttemptId,
        told: Option<(FencingToken, Moment)>,
        now: Moment,
    ) {
        self.attempts.remove(&attempt);
        self.forget_old(now);
        if let Some((token, until)) = told {
            let told = Attempt::WasTold(token, until);
            self.attempts.insert(attempt, told);
            self.memories.push_back((until, attempt));
        }
    }

    /// Gives a push to its waiter. False if no attempt waits for it, and no answer had the grant.
    pub(super) fn give(&self, attempt: AttemptId, pushed: Pushed) -> bool {
        match self.attempts.get(&attempt) {
            Some(Attempt::Waits { inbox, .. }) => {
                inbox.put(News::Pushed(pushed));
                true
            }
            Some(Attempt::WasTold(token, _)) => pushed.token <= *token,
            None => false,
        }
    }

    /// Tells the waiters of a shard that its reach has changed.
    pub(super) fn reach_changed(&self, of: u16) {
        for attempt in self.attempts.values() {
            if let Attempt::Waits { shard, inbox } = attempt
                && *shard == of
            {
                inbox.put(News::Reach);
            }
        }
    }

    fn forget_old(&mut self, now: Moment) {
        while let Some((_, oldest)) = self.memories.pop_front_if(|(until, _)| *until <= now) {
            // It may wait again, or remember another grant.
            let is_old = |it: &Attempt| matches!(it, Attempt::WasTold(_, until) if *until <= now);
            if self.attempts.get(&oldest).is_some_and(is_old) {
                self.attempts.remove(&oldest);
            }
        }
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
    /// A grant says more than that the reach has changed.
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
