//! Waiting in the queue: the watches of an entry.

use std::{future::pending, sync::Arc};

use futures_util::future::OptionFuture;

use super::{
    entry::Entry,
    error::Failure,
    note::Note,
    queue::Ahead,
    session::{Connection, Session},
    watch::{Watch, fired},
};
use lock_core::backend::Moment;

/// The watches of one entry: of its own node, of its predecessor, and of the node beyond that.
///
/// If the predecessor is the first in the queue, it has a lease. If the lease is not renewed for a
/// whole ttl, the entry deletes the node of the predecessor, because the predecessor's process has
/// stopped, and its session may last longer. The predecessor counts its lease from before it wrote
/// its node, and the entry counts from after it has seen that write. The deletion fails if the
/// predecessor has renewed the lease in between, because a renewal changes the version of the node.
///
/// If the predecessor is not the first, it may become the first without a change of its node,
/// because it was granted soon, or because its process has stopped while it waited. So the entry
/// also watches the node beyond the predecessor, and looks when that node is gone. The look runs
/// while the predecessor has its turn, so that the answer has arrived when the turn is over.
///
/// The watches of the own node and of the node beyond are watches of children, which none of these
/// nodes can have, so they fire for deletions only.
#[derive(Debug)]
pub(super) struct Watches {
    /// The connection on which the watches were set.
    connection: Connection,
    own: Option<Arc<Watch>>,
    predecessor: Option<Predecessor>,
    /// The node beyond the predecessor. When it is gone, the predecessor may be the first.
    beyond: Option<(String, Watch)>,
    silent: Option<Silent>,
    /// Whether the attempt was woken since the watches were set.
    has_woken: bool,
}

/// The node right before an entry.
#[derive(Debug)]
pub(super) struct Predecessor {
    pub(super) path: String,
    /// `None` if another library wrote it.
    pub(super) note: Option<Note>,
    pub(super) version: i32,
    /// Fires when the node is written or deleted.
    watch: Watch,
    /// Whether the node was the first in the queue when the entry last looked.
    is_first: bool,
}

/// A predecessor that was seen as the first in the queue. It is kept across looks and connections,
/// so that a waiter that is woken again and again for other reasons goes on counting.
#[derive(Debug)]
struct Silent {
    path: String,
    version: i32,
    since: Moment,
}

impl Watches {
    pub(super) fn new(session: &Session) -> Self {
        Self {
            connection: session.connection(),
            own: None,
            predecessor: None,
            beyond: None,
            silent: None,
            has_woken: false,
        }
    }

    /// Sets the watches that are not set, in one round trip, after a look that has shown these
    /// nodes before the entry. Returns false if one of the nodes is gone.
    pub(super) async fn set(
        &mut self,
        entry: &Entry<'_>,
        ahead: Ahead<'_>,
    ) -> Result<bool, Failure> {
        let session = &entry.session;
        if !self.connection.is_unbroken() {
            *self = Self {
                silent: self.silent.take(),
                ..Self::new(session)
            };
        }
        self.has_woken = false;
        let path = |node: &str| format!("{}/{node}", entry.directory);
        let (path, beyond) = (path(ahead.next), ahead.beyond.map(path));
        self.forget_fired(&path, beyond.as_ref());
        let new = self.predecessor.is_none();
        let predecessor = new.then(|| session.watched_data(&path));
        let own = self.own.is_none().then(|| session.watched(&entry.path));
        let new_beyond = beyond.as_ref().filter(|_| self.beyond.is_none());
        let watched = new_beyond.map(|path| session.watched(path));
        let (predecessor, own, watched) = tokio::join!(
            OptionFuture::from(predecessor),
            OptionFuture::from(own),
            OptionFuture::from(watched)
        );
        match own {
            Some(Err(Failure::NoNode)) => return Ok(false),
            Some(own) => {
                let (stat, watch) = own?;
                let is_same = entry.own.is_some_and(|own| own.czxid == stat.czxid);
                self.own = is_same.then(|| Arc::new(watch));
            }
            None => {}
        }
        match (new_beyond, watched) {
            (_, Some(Err(Failure::NoNode))) => return Ok(false),
            // This is a node of another library at which the client may not look. The entry does
            // without this watch.
            (_, Some(Err(Failure::Refused(_)))) => {}
            (Some(path), Some(watched)) => self.beyond = Some((path.clone(), watched?.1)),
            _ => {}
        }
        match predecessor {
            Some(Err(Failure::NoNode)) => return Ok(false),
            Some(found) => {
                let (data, stat, watcher) = found?;
                self.predecessor = Some(Predecessor {
                    path,
                    note: Note::decode(&data),
                    version: stat.version,
                    watch: Watch::new(watcher),
                    is_first: false,
                });
            }
            None => {}
        }
        if let Some(predecessor) = &mut self.predecessor {
            predecessor.is_first = beyond.is_none();
        }
        Ok(true)
    }

    /// Forgets the watches that have fired or that belong to other nodes.
    fn forget_fired(&mut self, path: &str, beyond: Option<&String>) {
        self.own.take_if(|own| own.has_fired());
        self.beyond
            .take_if(|(path, watch)| Some(&*path) != beyond || watch.has_fired());
        self.predecessor.take_if(|known| {
            // The look was answered before the last node before the entry was deleted.
            let is_turn = beyond.is_none() && known.watch.is_gone();
            known.path != path || (known.watch.has_fired() && !is_turn)
        });
    }

    /// Whether the entry is the first, because its predecessor was the only node before it and is
    /// gone. No other node can come in between. The servers report changes in their order, so they
    /// have already reported earlier changes of the entry's own node and of the floor. So no look
    /// is needed.
    pub(super) fn show_turn(&mut self) -> bool {
        let known = self.predecessor.as_ref();
        known.is_some_and(|known| known.is_first && known.watch.is_gone()) && self.show_own()
    }

    /// Whether the entry's own node still exists, as far as the servers have notified.
    pub(super) fn show_own(&mut self) -> bool {
        let own = self.own.as_ref();
        own.is_some_and(|own| !own.has_fired()) && self.connection.is_unbroken()
    }

    /// The moment at which the predecessor's lease ends unless it is renewed.
    pub(super) fn silent_until(&mut self, now: Moment) -> Moment {
        let known = self.predecessor.as_ref();
        let Some(first) = known.filter(|known| known.is_first) else {
            return Moment::NEVER;
        };
        let is_same = |it: &&Silent| it.path == first.path && it.version == first.version;
        let since = self
            .silent
            .as_ref()
            .filter(is_same)
            .map_or(now, |it| it.since);
        self.silent = Some(Silent {
            path: first.path.clone(),
            version: first.version,
            since,
        });
        let note = first.note.as_ref();
        note.map_or(Moment::NEVER, |note| since + note.ttl.get())
    }

    pub(super) const fn predecessor(&self) -> Option<&Predecessor> {
        self.predecessor.as_ref()
    }

    /// Waits until something has changed before the entry, or may have changed. After that it waits
    /// for ever, until the watches are set again.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub(super) async fn fired(&mut self) {
        if self.has_woken {
            return pending().await;
        }
        tokio::select! {
            biased;
            () = fired(self.predecessor.as_ref().map(|known| &known.watch)) => {}
            () = fired(self.own.as_deref()) => {}
            () = fired(self.beyond.as_ref().map(|(_, watch)| watch)) => {}
        }
        self.has_woken = true;
    }

    /// Takes the watch of the entry's own node. The watch is kept, because removing it costs a
    /// request.
    pub(super) fn take_own(&mut self) -> Option<Arc<Watch>> {
        self.own.take()
    }
}
