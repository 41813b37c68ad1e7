//! An entry in the queue.

use std::sync::Arc;

use futures_util::future::OptionFuture;
use zookeeper_client::Stat;

use super::{
    error::Failure,
    note::Note,
    queue::{Identity, Queue},
    service::Service,
    session::Session,
};
use lock_core::{
    Error, ErrorKind,
    backend::{AttemptRef, Moment},
};

/// The reason why a look has no answer.
#[derive(Debug)]
pub(super) enum Stop {
    /// The node is gone, and with it the queue entry or the lease.
    Gone,
    Failed(Failure),
    Refused(Error),
}

impl From<Stop> for Error {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Gone => {
                Self::not_applied(ErrorKind::Unavailable).because("the queue entry was deleted")
            }
            Stop::Failed(failure) => failure.into(),
            Stop::Refused(error) => error,
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// A node in the queue. If this is dropped, the reaper deletes it.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    service: &'a Service,
    pub(super) attempt: &'a AttemptRef,
    pub(super) session: Arc<Session>,
    pub(super) identity: Identity,
    pub(super) directory: String,
    pub(super) floor_path: String,
    pub(super) note: Note,
    /// A moment before the node was last written: its lease is counted from here.
    pub(super) written: Moment,
    /// Empty until the creation is known to have happened.
    pub(super) path: String,
    /// The state of the node when it was created, or at the last look.
    pub(super) own: Option<Stat>,
    /// Whether a creation was sent.
    is_sent: bool,
    /// Whether the node has become a lease, or is gone.
    is_done: bool,
}

/// The result of one look: the queue, and the entry's own node.
#[derive(Debug)]
pub(super) struct View {
    pub(super) queue: Queue,
    pub(super) own: Option<Stat>,
}

impl View {
    pub(super) fn new(nodes: Vec<String>, own: Option<Stat>) -> Self {
        Self {
            queue: Queue::new(nodes),
            own,
        }
    }

    /// The view of an entry that is known to be the first without a look.
    pub(super) fn alone(entry: &Entry<'_>) -> Self {
        Self::new(vec![entry.name().to_owned()], entry.own)
    }
}

impl<'a> Entry<'a> {
    /// Makes an entry, before anything is sent. From here on the table knows the node that may have
    /// to be deleted. `None` if the attempt has ended.
    pub(super) fn enter(
        service: &'a Service,
        attempt: &'a AttemptRef,
        session: &Arc<Session>,
        note: Note,
    ) -> Option<Self> {
        let identity = Identity::fresh(attempt.id, &*service.runtime);
        let entered = service
            .table()
            .enter(attempt, Arc::clone(session), identity.clone());
        entered.then(|| Self {
            service,
            attempt,
            session: Arc::clone(session),
            identity,
            directory: service.paths.directory(&attempt.resource),
            floor_path: service.paths.floor(&attempt.resource),
            note,
            written: service.runtime.now(),
            path: String::new(),
            own: None,
            is_sent: false,
            is_done: false,
        })
    }

    /// Sends the creation of the node. `None` if the attempt was cancelled.
    ///
    /// The check and the sending are one step: a cancel that comes later asks the servers later, so
    /// it finds the node.
    pub(super) fn create<'b>(
        &mut self,
        session: &'b Session,
        prefix: &'b str,
    ) -> Option<impl Future<Output = Result<(String, Stat), Failure>> + use<'b>> {
        let table = self.service.table();
        if !table.is_wanted(self.attempt, &self.identity) {
            return None;
        }
        self.is_sent = true;
        Some(session.create_contender(prefix, &self.note.encode()))
    }

    pub(super) fn prefix(&self) -> String {
        format!("{}/{}", self.directory, self.identity.as_str())
    }

    pub(super) fn created(&mut self, path: String, stat: Stat) {
        self.path = path;
        self.own = Some(stat);
    }

    /// Whether the node was created. Looks for it if its creation had no answer. Another client may
    /// have deleted it since.
    ///
    /// A creation that is under way on this connection comes before this look. If it was sent on a
    /// connection that broke, the servers have either accepted it, and decided it before the sync,
    /// or they will refuse it.
    pub(super) async fn is_created(&mut self) -> Result<bool, Failure> {
        if !self.path.is_empty() || !self.is_sent {
            return Ok(!self.path.is_empty());
        }
        let synced = self.session.sync(&self.directory);
        let nodes = self.session.children(&self.directory);
        let (synced, nodes) = tokio::join!(synced, nodes);
        let nodes = match synced.and(nodes) {
            Err(Failure::NoNode) => Vec::new(),
            nodes => nodes?,
        };
        if let Some(node) = self.identity.find(&nodes) {
            self.path = format!("{}/{node}", self.directory);
        }
        Ok(!self.path.is_empty())
    }

    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Looks at the queue. In the same round trip it looks at the entry's own node, unless a watch
    /// shows that this node exists.
    pub(super) async fn look(&self, is_shown: bool) -> Result<View, Failure> {
        let nodes = self.session.children(&self.directory);
        let own = (!is_shown).then(|| self.session.stat(&self.path));
        let (nodes, own) = tokio::join!(nodes, OptionFuture::from(own));
        match nodes {
            Ok(nodes) => Ok(View::new(nodes, own.unwrap_or(Ok(self.own))?)),
            Err(Failure::NoNode) => Ok(View::new(Vec::new(), None)),
            Err(failure) => Err(failure),
        }
    }

    /// Whether a look shows the node, and shows that it belongs to this session.
    pub(super) fn is_ours(&self, own: Option<Stat>) -> bool {
        own.is_some_and(|stat| stat.ephemeral_owner == self.session.id())
    }

    /// Deletes the node.
    pub(super) async fn leave(&mut self) -> Result<(), Failure> {
        let left = match self.is_created().await {
            Ok(true) => self.session.delete(&self.path, None).await,
            left => left.map(drop),
        };
        match left {
            Ok(()) | Err(Failure::NoNode | Failure::SessionOver(_)) => {
                self.service.table().leave(self.attempt, &self.identity);
                self.is_done = true;
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }

    /// Notes that the node is a lease, or gone. Then the drop of the entry leaves it alone.
    pub(super) const fn done(&mut self) {
        self.is_done = true;
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let (session, identity) = (Arc::clone(&self.session), self.identity.clone());
            self.service
                .table()
                .abandon(self.attempt, session, identity);
            self.service.reaper.notify_one();
        }
    }
}
