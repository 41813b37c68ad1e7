//! What all operations need.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tracing::debug;

use super::{
    PATIENCE, ZooKeeperOptions,
    error::Failure,
    floors::Floors,
    paths::Paths,
    service_url::ServiceUrl,
    session::{Session, Sessions},
    table::{Leftover, Node, Table},
};
use crate::{Clock, Error, Moment, Operation, ResourceName};

/// One client of a lock service.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) sessions: Sessions,
    pub(super) paths: Paths,
    pub(super) floors: Floors,
    pub(super) clock: Arc<dyn Clock>,
    /// Never held across an await; every step under it is short.
    table: Mutex<Table>,
    /// There is something new for the keeper.
    pub(super) keeper: Notify,
    /// An acquisition was granted for which another attempt waits.
    pub(super) granted: Notify,
}

impl Service {
    pub(super) fn new(url: ServiceUrl, options: &ZooKeeperOptions, clock: Arc<dyn Clock>) -> Self {
        Self {
            paths: Paths::new(&url.chroot, &options.prefix),
            sessions: Sessions::new(url, options, Arc::clone(&clock)),
            floors: Floors::new(options.initial_token),
            clock,
            table: Mutex::new(Table::new()),
            keeper: Notify::new(),
            granted: Notify::new(),
        }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        // A panic cannot leave the table half changed: no step panics between two changes.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session. A service that cannot be reached is waited for, but not for long.
    pub(super) async fn session(
        &self,
        operation: Operation,
        until: Moment,
    ) -> Result<Arc<Session>, Error> {
        let patience = self.clock.now() + PATIENCE;
        let until = std::cmp::min(until, patience);
        self.sessions.get(operation, until).await
    }

    /// Deletes what is left behind of a resource, before anybody looks at it. The keeper goes on
    /// with what cannot be deleted now.
    pub(super) async fn clear(&self, resource: &ResourceName) {
        let leftovers = self.table().leftovers_of(resource, self.clock.now());
        for leftover in leftovers {
            if leftover.session.is_connected()
                && let Err(failure) = self.remove(&leftover).await
            {
                debug!(?failure, "what is left behind stays for now");
            }
        }
    }

    /// Deletes what is left behind, as often as it takes.
    pub(super) async fn remove(&self, leftover: &Leftover) -> Result<(), Failure> {
        match self.delete(leftover).await {
            // Somebody else has, or the servers have, or will before anybody is granted a thing.
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
                // Its creation may be under way still: on this connection, and then it comes before
                // what we ask now, or on one that broke. What the servers took from that one they
                // decided before the sync, and what they did not take they refuse.
                let directory = self.paths.line(&leftover.resource);
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
