//! The leader under a name: one request per interval for all observers of a manager.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use futures_util::{Stream, stream};

use super::{LockManager, lead_resource};
use crate::{Error, FencingToken, HolderView, Moment, support::lock};

impl LockManager {
    /// The leader under a name: a stream that begins with the present leader and goes on with each
    /// change. An item is `None` while there is no leader. The stream looks once per interval for
    /// all observers of that name in this manager and its clones.
    ///
    /// The address of a leader is in its [metadata](HolderView::metadata), if the leader has put it
    /// there. A leader may already have lost its lease when it arrives in the stream, so decide
    /// nothing by it. After an error the stream goes on. It ends when the manager is [shut
    /// down](Self::shutdown).
    ///
    /// # Cancel safety
    /// Dropping the stream leaves nothing behind.
    pub fn observe(
        &self,
        name: &str,
        every: Duration,
    ) -> impl Stream<Item = Result<Option<HolderView>, Error>> + Send + use<> {
        let resource = lead_resource(name);
        let observer = Observer {
            last: self.inner.leaders.of(&resource),
            locks: self.clone(),
            resource,
            every,
            seen: None,
        };
        stream::unfold(observer, async |mut observer| {
            let locks = observer.locks.clone();
            tokio::select! {
                biased;
                () = locks.inner.watchdog.closed() => None,
                change = observer.change() => Some((change, observer)),
            }
        })
    }
}

/// The last looks of the observers of this manager, by resource.
#[derive(Default)]
pub(super) struct Leaders(Mutex<HashMap<String, Weak<LastLook>>>);

/// The last look for one name. Observers that come while another observer looks wait for its
/// result.
type LastLook = tokio::sync::Mutex<Option<Look>>;

#[derive(Clone)]
struct Look {
    answered: Moment,
    found: Result<Option<HolderView>, Error>,
}

impl Leaders {
    fn of(&self, resource: &str) -> Arc<LastLook> {
        let mut looks = lock(&self.0);
        looks.retain(|_, last| last.strong_count() > 0);
        if let Some(last) = looks.get(resource).and_then(Weak::upgrade) {
            return last;
        }
        let last = Arc::default();
        looks.insert(resource.to_owned(), Arc::downgrade(&last));
        last
    }
}

struct Observer {
    locks: LockManager,
    resource: String,
    every: Duration,
    last: Arc<LastLook>,
    seen: Option<Seen>,
}

/// The last result, and the moment of the answer.
struct Seen {
    answered: Moment,
    leader: Result<Option<FencingToken>, ()>,
}

impl Observer {
    async fn change(&mut self) -> Result<Option<HolderView>, Error> {
        loop {
            if let Some(seen) = &self.seen {
                let next = seen.answered + self.every;
                self.locks.runtime().sleep_until(next).await;
            }
            let Look { answered, found } = self.look().await;
            let leader = found.as_ref().map_err(drop);
            let leader = leader.map(|found| found.as_ref().map(|leader| leader.token));
            let seen = self.seen.replace(Seen { answered, leader });
            if seen.is_none_or(|seen| seen.leader != leader) {
                return found;
            }
        }
    }

    /// The last look, unless it is too old for this observer.
    async fn look(&self) -> Look {
        let mut last = self.last.lock().await;
        let runtime = self.locks.runtime();
        if let Some(look) = &*last
            && runtime.now().since(look.answered) < self.every
        {
            return look.clone();
        }
        let found = self.locks.inspect(&self.resource).await;
        let look = Look {
            answered: runtime.now(),
            found: found.map(|looked| looked.holder),
        };
        last.insert(look).clone()
    }
}
