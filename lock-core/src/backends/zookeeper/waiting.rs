//! Waiting in line: what is watched, and when to look again without having been told.

use std::{cmp, sync::Arc, time::Duration};

use futures_util::future::OptionFuture;
use zookeeper_client::OneshotWatcher;

use super::{
    acquire::Acquiring, error::Failure, line::Ahead, note::Note, place::Place, session::Session,
    watch::Watch,
};
use crate::{Clock, Moment, Wait};

/// A waiter looks again after this time even if nothing was told to it.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// A node that may have become the first in line is looked at after this part of its ttl. By then
/// it is gone again or was written once more, unless its process has stopped.
const GRACE: u32 = 4;

/// What a waiter has the servers tell of, beside changes of the next node before its own.
///
/// These are watches of children, which none of the nodes can have: they tell of deletions only.
#[derive(Debug, Default)]
pub(super) struct Watches {
    own: Option<Arc<Watch>>,
    /// The node before the next one: when it is gone, the next one may be the first.
    beyond: Option<(String, Watch)>,
}

/// The next node before ours.
struct Next {
    /// `None`: another library wrote it.
    note: Option<Note>,
    version: i32,
    changed: OneshotWatcher,
}

impl Watches {
    /// The watch of the waiter's own node. It is worth keeping: to take it back costs a request.
    pub(super) fn into_own(self) -> Option<Arc<Watch>> {
        self.own
    }

    /// Sets what is not set yet, in one round trip. `None`: one of the nodes is gone.
    async fn set(
        &mut self,
        session: &Session,
        own: &str,
        next: &str,
        beyond: Option<String>,
    ) -> Result<Option<Next>, Failure> {
        if self.beyond.as_ref().map(|(path, _)| path) != beyond.as_ref() {
            self.beyond = None;
        }
        let next = session.watched_data(next);
        let new_own = self.own.is_none().then(|| session.watched(own));
        let new_beyond = beyond.filter(|_| self.beyond.is_none());
        let watch = new_beyond.as_ref().map(|path| session.watched(path));
        let (next, own, watch) =
            tokio::join!(next, OptionFuture::from(new_own), OptionFuture::from(watch));
        if let Some(watch) = own {
            match watch {
                Err(Failure::NoNode) => return Ok(None),
                watch => self.own = Some(Arc::new(watch?)),
            }
        }
        if let (Some(path), Some(watch)) = (new_beyond, watch) {
            match watch {
                Err(Failure::NoNode) => return Ok(None),
                // One of another library that we may not look at: it does without.
                Err(Failure::Refused(_)) => {}
                watch => self.beyond = Some((path, watch?)),
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

    /// Waits until the waiter's own node is gone.
    async fn own_is_gone(&self) {
        match &self.own {
            Some(own) => own.told().await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the node beyond the next one is gone.
    async fn beyond_is_gone(&self) {
        match &self.beyond {
            Some((_, beyond)) => beyond.told().await,
            None => std::future::pending().await,
        }
    }
}

impl Acquiring<'_> {
    /// Waits until something has changed before us, or may have.
    ///
    /// If the next one before us is the first in line, it has a lease, and is silent for as long as
    /// it lasts, then it is deleted: its process has stopped, and its session may last longer. It
    /// counts its lease from before it wrote its node, and we from after we have seen that. It has
    /// not renewed the lease meanwhile, or the version would be another one.
    ///
    /// If it is not, it may become the first and change nothing: it was granted soon, or its process
    /// had stopped while it waited. So the node before it is watched too.
    pub(super) async fn wait_for(
        &self,
        place: &Place<'_>,
        watches: &mut Watches,
        ahead: Ahead<'_>,
    ) -> Result<(), Failure> {
        let path = |node: &str| format!("{}/{node}", place.directory);
        let next_path = path(ahead.next);
        let beyond = ahead.beyond.map(path);
        let is_first = beyond.is_none();
        let set = watches.set(&place.session, &place.path, &next_path, beyond);
        let Some(next) = set.await? else {
            return Ok(());
        };
        let clock = &self.service.clock;
        let now = clock.now();
        let ttl = next.note.map(|note| note.ttl.get());
        let silent = ttl
            .filter(|_| is_first)
            .map_or(Moment::NEVER, |ttl| now + ttl);
        let until = match self.request.wait {
            Wait::Until(moment) => moment,
            Wait::Never | Wait::Forever => Moment::NEVER,
        };
        let wake = cmp::min(cmp::min(silent, until), now + LOOK_AGAIN);
        tokio::select! {
            biased;
            _ = next.changed.changed() => return Ok(()),
            () = watches.own_is_gone() => return Ok(()),
            () = look_again(&**clock, watches, wake, ttl) => {}
        }
        if clock.now() >= silent {
            match place.session.delete(&next_path, Some(next.version)).await {
                Ok(()) | Err(Failure::NoNode | Failure::BadVersion) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }
}

/// Waits until `wake`, or until the next one before us may have been the first for long enough to
/// show it. Those of another library end with their session: there is nothing to look for.
async fn look_again(clock: &dyn Clock, watches: &Watches, wake: Moment, ttl: Option<Duration>) {
    tokio::select! {
        biased;
        () = watches.beyond_is_gone() => {
            let grace = ttl.map_or(Moment::NEVER, |ttl| clock.now() + ttl / GRACE);
            clock.sleep_until(cmp::min(wake, grace)).await;
        }
        () = clock.sleep_until(wake) => {}
    }
}
