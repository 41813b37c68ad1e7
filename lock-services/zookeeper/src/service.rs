//! The parts that all operations need.

use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{Notify, watch};
use tracing::debug;

use super::{
    error::Failure,
    floors::Floors,
    paths::Paths,
    service_url::ServiceUrl,
    session::{Session, Sessions},
    table::{Leftover, Node, Table},
};
use lock_core::{
    Error, ResourceName,
    backend::{
        Runtime,
        support::{connecting::Settings, lock},
    },
};

/// One client of a lock service.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) sessions: Sessions,
    pub(super) paths: Paths,
    pub(super) floors: Floors,
    pub(super) runtime: Arc<dyn Runtime>,
    /// The lock is never held across an await, and every step under it is short.
    table: Mutex<Table>,
    /// Notified when there is something new for the reaper.
    pub(super) reaper: Notify,
    /// Changes when an acquisition was granted for which another attempt waits.
    pub(super) granted: watch::Sender<()>,
}

impl Service {
    pub(super) fn new(url: ServiceUrl, settings: &Settings, runtime: Arc<dyn Runtime>) -> Self {
        Self {
            paths: Paths::new(&url.chroot, &settings.prefix),
            sessions: Sessions::new(url, settings.response_timeout, Arc::clone(&runtime)),
            floors: Floors::new(settings.initial_token),
            runtime,
            table: Mutex::new(Table::new()),
            reaper: Notify::new(),
            granted: watch::Sender::default(),
        }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }

    /// The present session, or a new one.
    pub(super) async fn session(&self) -> Result<Arc<Session>, Error> {
        self.sessions.get().await
    }

    /// Deletes the nodes that were left behind at a resource, before a look at it. Nodes that
    /// cannot be deleted now are left to the reaper.
    pub(super) async fn clear(&self, resource: &ResourceName) {
        let leftovers = self.table().leftovers_of(resource, self.runtime.now());
        for leftover in leftovers {
            if leftover.session.is_connected()
                && let Err(failure) = self.remove(&leftover).await
            {
                debug!(?failure, "what is left behind stays for now");
            }
        }
    }

    /// Deletes a node that was left behind, or finds that it is gone.
    pub(super) async fn remove(&self, leftover: &Leftover) -> Result<(), Failure> {
        match self.delete(leftover).await {
            // Another client or the servers have deleted the node, or the servers will delete it
            // before their next grant.
            Ok(()) | Err(Failure::NoNode | Failure::SessionOver(_)) => {
                self.table().removed(leftover);
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    async fn delete(&self, leftover: &Leftover) -> Result<(), Failure> {
        let session = &leftover.session;
        match &leftover.node {
            Node::Path(path) => session.delete(path, None).await,
            Node::Identity(identity) => {
                // The creation of the node may still be under way. If it was sent on this
                // connection, it comes before the next request. If it was sent on a connection that
                // broke, the servers have either accepted it, and decided it before the sync, or
                // they will refuse it.
                let directory = self.paths.directory(&leftover.resource);
                let synced = session.sync(&directory);
                let nodes = session.children(&directory);
                synced.await?;
                match identity.find(&nodes.await?) {
                    Some(node) => session.delete(&format!("{directory}/{node}"), None).await,
                    None => Ok(()),
                }
            }
        }
    }
}
