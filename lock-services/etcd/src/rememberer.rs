use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use tokio::sync::mpsc::UnboundedSender;
use tracing::debug;

use super::keys::Names;
use lock_core::support::lock;

/// Moves marks that would be forgotten too early to another lease, without anybody waiting for it.
///
/// Each mark takes a look and a change, and many may be due at once. If the answer to a renewal
/// came only after those, leases that were renewed in time would be lost.
#[derive(Debug)]
pub(super) struct Rememberer {
    due: UnboundedSender<Due>,
    /// The acquisitions that are being worked on or wait for it, so that none is there twice.
    under_way: Mutex<HashSet<i64>>,
}

/// An acquisition whose mark would be forgotten too early.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) names: Names,
    pub(super) ttl: Duration,
}

impl Rememberer {
    /// What is due goes there.
    pub(super) fn new(due: UnboundedSender<Due>) -> Self {
        Self {
            due,
            under_way: Mutex::default(),
        }
    }

    pub(super) fn take(&self, names: Names, ttl: Duration) {
        if self.under_way().insert(names.lease(0)) && self.due.send(Due { names, ttl }).is_err() {
            debug!("etcd: what is remembered of a lease may be forgotten early");
        }
    }

    /// It has been worked on, well or not.
    pub(super) fn is_done(&self, names: &Names) {
        self.under_way().remove(&names.lease(0));
    }

    fn under_way(&self) -> MutexGuard<'_, HashSet<i64>> {
        lock(&self.under_way)
    }
}
