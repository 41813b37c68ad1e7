//! Keeps the marks of living guards young, so that they are not forgotten while they are held.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use lock_core::{
    Sequencer,
    backend::{
        Moment, Runtime,
        support::{OwnedTask, lock},
    },
};
use tracing::debug;

use crate::{FencedStore, Storage};

/// The age of a mark when it is refreshed: a third of the least age at which it may be forgotten.
const EVERY: Duration = Duration::from_secs(20 * 60);

/// The pause after a refresh that failed because of an open transaction or an error of the
/// database.
const AGAIN: Duration = Duration::from_secs(60);

/// The living guards of a pair of lock service and store. One task refreshes their marks. The task
/// ends when no guard is left, or with the pair.
#[derive(Debug)]
pub(crate) struct Refreshed<DB: Storage> {
    store: FencedStore<DB>,
    guards: Mutex<Guards>,
}

#[derive(Debug, Default)]
struct Guards {
    last: u64,
    /// Each with the time of its next refresh.
    living: BTreeMap<u64, (Sequencer, Moment)>,
    task: Option<OwnedTask>,
}

/// The entry of one guard in [`Refreshed`]. A drop removes the entry.
#[derive(Debug)]
pub(crate) struct Living<DB: Storage> {
    id: u64,
    among: Arc<Refreshed<DB>>,
}

impl<DB: Storage> Refreshed<DB> {
    pub(crate) fn new(store: FencedStore<DB>) -> Arc<Self> {
        let guards = Mutex::default();
        Arc::new(Self { store, guards })
    }

    /// Adds a guard whose grant was claimed a moment ago.
    pub(crate) fn add(self: &Arc<Self>, grant: &Sequencer) -> Living<DB> {
        let due = self.store.runtime.now() + EVERY;
        let mut guards = lock(&self.guards);
        guards.last += 1;
        let id = guards.last;
        guards.living.insert(id, (grant.clone(), due));
        if guards.task.is_none() {
            let task = refresh(Arc::downgrade(self), Arc::clone(&self.store.runtime));
            guards.task = Some(self.store.tasks().own(task));
        }
        drop(guards);
        Living {
            id,
            among: Arc::clone(self),
        }
    }

    /// The time of the next refresh; `None` ends the task.
    fn next(&self) -> Option<Moment> {
        let mut guards = lock(&self.guards);
        let next = guards.living.values().map(|(_, due)| *due).min();
        if next.is_none() {
            guards.task = None;
        }
        next
    }

    /// The guards whose refresh is due.
    fn due(&self, now: Moment) -> Vec<(u64, Sequencer)> {
        let guards = lock(&self.guards);
        let due = guards.living.iter().filter(|(_, (_, due))| *due <= now);
        due.map(|(id, (grant, _))| (*id, grant.clone())).collect()
    }

    fn postpone(&self, id: u64, to: Moment) {
        if let Some((_, due)) = lock(&self.guards).living.get_mut(&id) {
            *due = to;
        }
    }
}

impl<DB: Storage> Drop for Living<DB> {
    fn drop(&mut self) {
        lock(&self.among.guards).living.remove(&self.id);
    }
}

/// Refreshes the marks of the guards, each in a transaction of its own.
async fn refresh<DB: Storage>(pair: Weak<Refreshed<DB>>, runtime: Arc<dyn Runtime>) {
    while let Some(next) = pair.upgrade().and_then(|pair| pair.next()) {
        // Guards that come meanwhile are due later.
        runtime.sleep(next.since(runtime.now())).await;
        let Some(pair) = pair.upgrade() else {
            return;
        };
        for (id, grant) in pair.due(runtime.now()) {
            let again = match pair.store.refresh(&grant).await {
                Ok(true) => EVERY,
                Ok(false) => AGAIN,
                Err(error) => {
                    debug!(%error, resource = %grant.resource(), "a mark is not refreshed yet");
                    AGAIN
                }
            };
            pair.postpone(id, runtime.now() + again);
        }
    }
}
