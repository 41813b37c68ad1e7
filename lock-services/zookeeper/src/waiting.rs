//! Waiting in the queue: what is watched, and when to look again without having been told.

use std::{cmp, pin::pin, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::OptionFuture};
use zookeeper_client::{EventType, OneshotWatcher};

use super::{
    acquiring::Acquiring,
    entry::Entry,
    error::Failure,
    note::Note,
    queue::{Ahead, Queue},
    session::{Connection, Session},
    watch::Watch,
};
use lock_core::backend::Moment;

/// After how long a waiter looks again even if it was told nothing.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// What a waiter watches besides the next node before its own.
///
/// These are watches of children, which none of these nodes can have, so they tell of deletions
/// only.
#[derive(Debug)]
pub(super) struct Watches {
    /// The connection on which they were set.
    connection: Connection,
    own: Option<Arc<Watch>>,
    /// The node before the next one. When it is gone, the next one may be the first.
    beyond: Option<(String, Arc<Watch>)>,
    silent: Option<Silent>,
}

/// A next node that was seen as the first in the queue. This outlasts looks and connections, so
/// that a waiter that is woken again and again for other reasons goes on counting.
#[derive(Debug)]
struct Silent {
    path: String,
    version: i32,
    since: Moment,
}

/// How a wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// The next node was the only one before ours. It is gone, and ours was still there then.
    First,
    /// Only a look can tell.
    Perhaps,
}

/// The next node before ours.
struct Next {
    /// `None` if another library wrote it.
    note: Option<Note>,
    version: i32,
    changed: OneshotWatcher,
}

impl Watches {
    pub(super) fn new(session: &Session) -> Self {
        Self {
            connection: session.connection(),
            own: None,
            beyond: None,
            silent: None,
        }
    }

    /// Since when the first in the queue is known to be that node, with that version.
    fn silent_since(&mut self, path: &str, version: i32, now: Moment) -> Moment {
        let known = self.silent.as_ref();
        let same = known.filter(|silent| silent.path == path && silent.version == version);
        if let Some(silent) = same {
            return silent.since;
        }
        self.silent = Some(Silent {
            path: path.to_owned(),
            version,
            since: now,
        });
        now
    }

    /// The watch of the waiter's own node. It is worth keeping, because taking it back costs a
    /// request.
    pub(super) fn into_own(self) -> Option<Arc<Watch>> {
        self.own
    }

    /// Sets those that are not set yet, in one round trip. `None` if one of the nodes is gone.
    async fn set(
        &mut self,
        entry: &Entry<'_>,
        next: &str,
        beyond: Option<String>,
    ) -> Result<Option<Next>, Failure> {
        let session = &entry.session;
        if !self.connection.is_unbroken() {
            *self = Self {
                silent: self.silent.take(),
                ..Self::new(session)
            };
        }
        if self.beyond.as_ref().map(|(path, _)| path) != beyond.as_ref() {
            self.beyond = None;
        }
        let next = session.watched_data(next);
        let new_own = self.own.is_none().then(|| session.watched(&entry.path));
        let new_beyond = beyond.filter(|_| self.beyond.is_none());
        let watch = new_beyond.as_ref().map(|path| session.watched(path));
        let (next, own, watch) =
            tokio::join!(next, OptionFuture::from(new_own), OptionFuture::from(watch));
        if let Some(watch) = own {
            match watch {
                Err(Failure::NoNode) => return Ok(None),
                watch => {
                    let (stat, watch) = watch?;
                    let is_same = entry.own.is_some_and(|own| own.czxid == stat.czxid);
                    self.own = is_same.then(|| Arc::new(watch));
                }
            }
        }
        if let (Some(path), Some(watch)) = (new_beyond, watch) {
            match watch {
                Err(Failure::NoNode) => return Ok(None),
                // A node of another library that we may not look at. The waiter does without this
                // watch.
                Err(Failure::Refused(_)) => {}
                watch => self.beyond = Some((path, Arc::new(watch?.1))),
            }
        }
        match next {
            Err(Failure::NoNode) => Ok(None),
            next => {
                let (data, stat, changed) = next?;
                Ok(Some(Next {
                    note: Note::decode(&data),
                    version: stat.version,
                    changed,
                }))
            }
        }
    }

    /// The watch of the node beyond the next one.
    fn beyond(&self) -> Option<Arc<Watch>> {
        self.beyond.as_ref().map(|(_, watch)| Arc::clone(watch))
    }

    /// The next one is gone, so it is the waiter's turn, if its own node was there when the servers
    /// said so.
    fn turn(&mut self) -> Woken {
        let own = self.own.as_ref();
        if own.is_some_and(|own| !own.has_told()) && self.connection.is_unbroken() {
            Woken::First
        } else {
            Woken::Perhaps
        }
    }

    /// Waits until the waiter's own node is gone.
    async fn own_is_gone(&self) {
        match &self.own {
            Some(own) => own.told().await,
            None => std::future::pending().await,
        }
    }
}

/// What a look at the queue shows to be before an entry that was behind a next one and others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nobody,
    /// That next one, and nobody else.
    Next,
    /// Others as well, or the entry is not in the queue.
    Others,
}

impl Before {
    /// Waits until the node beyond the next one is gone, and looks at the queue then.
    ///
    /// The look happens while the next one has its turn, so that the result is known when that is
    /// over.
    async fn when_told(
        beyond: Option<Arc<Watch>>,
        entry: &Entry<'_>,
        next: &str,
    ) -> Result<Self, Failure> {
        match beyond {
            Some(beyond) => beyond.told().await,
            None => std::future::pending().await,
        }
        let queue = match entry.session.children(&entry.directory).await {
            Err(Failure::NoNode) => return Ok(Self::Others),
            nodes => Queue::new(nodes?),
        };
        Ok(match queue.ahead_of(entry.name()) {
            Some(None) => Self::Nobody,
            Some(Some(ahead)) if ahead.next == next && ahead.beyond.is_none() => Self::Next,
            _ => Self::Others,
        })
    }
}

impl Acquiring<'_> {
    /// Waits until something has changed before us, or may have.
    ///
    /// If the next one before us is the first in the queue, it has a lease. If it is silent for the
    /// whole ttl, we delete it: its process has stopped, and its session may last longer. It counts
    /// its lease from before it wrote its node, and we count from after we have seen that. It has
    /// not renewed the lease meanwhile, or the version would be another one.
    ///
    /// If it is not, it may become the first without a change of its node: because it was granted
    /// soon, or because its process has stopped while it waited. So the node before it is watched,
    /// too.
    ///
    /// When the next one was the only one before us and is gone, we are the first: nobody can come
    /// in between. The servers tell of changes in their order, so by then we have been told
    /// whatever had happened to our own node and to the floor. No look is needed.
    ///
    /// If the next one is gone before we know whether it was the only one, the look at the queue
    /// that is under way tells. If it shows nobody before us, or only that one, we are the first.
    pub(super) async fn wait_for(
        &self,
        entry: &Entry<'_>,
        watches: &mut Watches,
        ahead: Ahead<'_>,
    ) -> Result<Woken, Failure> {
        let path = |node: &str| format!("{}/{node}", entry.directory);
        let next_path = path(ahead.next);
        let beyond = ahead.beyond.map(path);
        let mut is_first = beyond.is_none();
        let Some(next) = watches.set(entry, &next_path, beyond).await? else {
            return Ok(Woken::Perhaps);
        };
        let clock = &self.service.clock;
        let now = clock.now();
        let ttl = next.note.map(|note| note.ttl.get());
        let silent = |watches: &mut Watches| {
            let since = watches.silent_since(&next_path, next.version, clock.now());
            ttl.map_or(Moment::NEVER, |ttl| since + ttl)
        };
        let mut silent_until = if is_first {
            silent(watches)
        } else {
            Moment::NEVER
        };
        let look = cmp::min(self.request.wait.limit(), now + LOOK_AGAIN);
        let mut is_gone = false;
        let mut changed = pin!(next.changed.changed());
        let beyond = watches.beyond();
        let mut before = pin!(Before::when_told(beyond.clone(), entry, ahead.next).fuse());
        loop {
            tokio::select! {
                biased;
                event = &mut changed, if !is_gone => {
                    is_gone = event.event_type == EventType::NodeDeleted;
                    // If it has not, nobody waits for its look any more.
                    let is_looking = || beyond.as_ref().is_some_and(|beyond| beyond.has_told());
                    if !is_gone || !(is_first || is_looking()) {
                        return Ok(Woken::Perhaps);
                    }
                }
                () = watches.own_is_gone() => return Ok(Woken::Perhaps),
                seen = &mut before => {
                    match seen? {
                        Before::Nobody => is_gone = true,
                        Before::Next => silent_until = silent(watches),
                        Before::Others => return Ok(Woken::Perhaps),
                    }
                    is_first = true;
                }
                () = clock.sleep_until(cmp::min(silent_until, look)) => break,
            }
            if is_gone && is_first {
                return Ok(watches.turn());
            }
        }
        if clock.now() >= silent_until {
            match entry.session.delete(&next_path, Some(next.version)).await {
                Ok(()) | Err(Failure::NoNode | Failure::BadVersion) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(Woken::Perhaps)
    }
}
