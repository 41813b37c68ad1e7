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
/// If the predecessor is the first in the queue, it has a lease. If it does not renew it for a
/// whole ttl, the entry deletes it: its process has stopped, and its session may last longer. It
/// counts its lease from before it wrote its node, and the entry counts from after it has seen
/// that. It has not renewed the lease meanwhile, or the version would be another one.
///
/// If the predecessor is not the first, it may become the first without a change of its node:
/// because it was granted soon, or because its process has stopped while it waited. So the entry
/// watches the node beyond it, too, and looks when that is gone. The look goes on while the
/// predecessor has its turn, so that the answer is there when the turn is over.
///
/// The watches of the own node and of the node beyond are watches of children, which none of these
/// nodes can have, so they fire for deletions only.
#[derive(Debug)]
pub(super) struct Watches {
    /// The connection on which they were set.
    connection: Connection,
    own: Option<Arc<Watch>>,
    predecessor: Option<Predecessor>,
    /// When this is gone, the predecessor may be the first.
    beyond: Option<(String, Watch)>,
    silent: Option<Silent>,
    /// The attempt was woken since they were set.
    has_woken: bool,
}

/// The node right before an entry.
#[derive(Debug)]
pub(super) struct Predecessor {
    pub(super) path: String,
    /// `None` if another library wrote it.
    pub(super) note: Option<Note>,
    pub(super) version: i32,
    /// Fires when it is written or deleted.
    watch: Watch,
    /// It was the first in the queue when the entry last looked.
    is_first: bool,
}

/// A predecessor that was seen as the first in the queue. This outlasts looks and connections, so
/// that a waiter that is woken again and again for other reasons goes on counting.
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

    /// Sets those that are not set, in one round trip, after a look that has shown these nodes
    /// before the entry. False if one of them is gone.
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
            // A node of another library that we may not look at. The entry does without this watch.
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

    /// Forgets the watches that have fired or are of other nodes.
    fn forget_fired(&mut self, path: &str, beyond: Option<&String>) {
        self.own.take_if(|own| own.has_fired());
        self.beyond
            .take_if(|(path, watch)| Some(&*path) != beyond || watch.has_fired());
        self.predecessor.take_if(|known| {
            // The look was answered before the last node before the entry went.
            let is_turn = beyond.is_none() && known.watch.is_gone();
            known.path != path || (known.watch.has_fired() && !is_turn)
        });
    }

    /// Whether the entry is the first, because its predecessor was the only node before it and is
    /// gone: no other node can come in between. The servers tell of changes in their order, so by
    /// then they have told what had happened to the own node and to the floor. No look is needed.
    pub(super) fn show_turn(&mut self) -> bool {
        let known = self.predecessor.as_ref();
        known.is_some_and(|known| known.is_first && known.watch.is_gone()) && self.show_own()
    }

    /// Whether the own node is still there, as far as the servers have notified.
    pub(super) fn show_own(&mut self) -> bool {
        let own = self.own.as_ref();
        own.is_some_and(|own| !own.has_fired()) && self.connection.is_unbroken()
    }

    /// The moment at which the predecessor's lease is over unless it is renewed.
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

    /// Waits until something has changed before the entry, or may have. After that, waits for ever
    /// until they are set again.
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

    /// The watch of the own node. It is worth keeping, because removing it costs a request.
    pub(super) fn take_own(&mut self) -> Option<Arc<Watch>> {
        self.own.take()
    }
}
