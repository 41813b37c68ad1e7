//! The answers that clients got, to be compared with the database afterwards.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// Claims and commits that were answered.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    told: Mutex<Told>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Told {
    /// The greatest token by resource.
    claims: BTreeMap<String, u64>,
    /// The numbers of the committed transactions.
    commits: BTreeSet<i64>,
}

impl Accounts {
    pub(super) fn claimed(&self, resource: &str, token: u64) {
        self.told().claims.insert(resource.to_owned(), token);
    }

    pub(super) fn committed(&self, number: i64) {
        self.told().commits.insert(number);
        self.changed.notify_waiters();
    }

    /// Waits for this number of further commits.
    pub(super) async fn until_more(&self, commits: usize) {
        let wanted = self.told().commits.len() + commits;
        loop {
            let changed = self.changed.notified();
            if self.told().commits.len() >= wanted {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn claims(&self) -> BTreeMap<String, u64> {
        self.told().claims.clone()
    }

    /// How many of the commits are missing.
    pub(super) fn lost(&self, stored: &BTreeSet<i64>) -> usize {
        self.told().commits.difference(stored).count()
    }

    pub(super) fn commits(&self) -> usize {
        self.told().commits.len()
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
