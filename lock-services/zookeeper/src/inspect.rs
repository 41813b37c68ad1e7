//! Looks at held resources, and ends leases by force.

use std::sync::Mutex;

use futures_util::future::join_all;

use super::{
    error::Failure,
    floors::{self, Floor},
    paths,
    service::Service,
    session::{Change, Session},
    upkeep::Shown,
};
use lock_core::{
    Error, ErrorKind, FencingToken, HolderView, Inspection, Listed, Metadata, ResourceName,
    backend::{Forced, repeat, support::lock},
};

/// The number of resources that are looked at at the same time.
pub(super) const AT_ONCE: usize = 32;

/// The number of tries to end a lease that its holder keeps changing.
const FORCE_ATTEMPTS: u32 = 20;

impl Service {
    pub(super) async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let session = self.session().await?;
        match self.first(&session, resource).await? {
            Some(first) => self.seen(&session, resource, &first),
            None => Ok(Inspection::new(None).waiters(0)),
        }
    }

    pub(super) async fn list(&self) -> Result<Vec<Listed>, Error> {
        let session = self.session().await?;
        let directories = match session.children(self.paths.locks()).await {
            Ok(directories) => directories,
            Err(Failure::NoNode) => Vec::new(),
            Err(failure) => return Err(failure.into()),
        };
        let mut listed = Vec::new();
        let resources: Vec<_> = directories
            .iter()
            .filter_map(|name| paths::resource(name))
            .collect();
        for some in resources.chunks(AT_ONCE) {
            let looks = some.iter().map(|resource| self.first(&session, resource));
            for (resource, first) in some.iter().zip(join_all(looks).await) {
                if let Some(first) = first? {
                    listed.push(Listed {
                        resource: resource.clone(),
                        inspection: self.seen(&session, resource, &first)?,
                    });
                }
            }
        }
        Ok(listed)
    }

    /// The view that others get of the first in the queue.
    ///
    /// Only the process of a lease knows how much time the lease has left. For a lease of another
    /// process the ttl is shown, which is the most that can be left.
    fn seen(
        &self,
        session: &Session,
        resource: &ResourceName,
        first: &Shown,
    ) -> Result<Inspection, Error> {
        let now = self.runtime.now();
        let mut table = self.table();
        let ours = table.at(resource, &first.path, now);
        let ours = ours.map(|hold| hold.deadline);
        drop(table);
        let holder = if let Some(note) = &first.note {
            let token = floors::token(note.floor, first.created)?;
            let remaining = ours.map_or(note.ttl.get(), |deadline| deadline.since(now));
            HolderView::of_digest(&note.holder, token, remaining).metadata(note.metadata.clone())
        } else {
            // This is a node of another library. The view has its name and the text that the
            // library wrote.
            let token = floors::token(0, first.created)?;
            let name = first.path.rsplit('/').next().unwrap_or_default();
            let text = String::from_utf8_lossy(&first.data);
            let metadata = Some(Metadata::escaped(&text)).filter(|_| !text.is_empty());
            HolderView::of_fingerprint(name, token, session.longest_lease()).metadata(metadata)
        };
        let waiters = u64::try_from(first.waiters).unwrap_or(u64::MAX);
        Ok(Inspection::new(Some(holder)).waiters(waiters))
    }

    /// Ends a lease by force, and sends the request again if there is no answer.
    pub(super) async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let lost = Mutex::default();
        let force = || self.force_once(resource, token, &lost);
        repeat(&*self.runtime, force).await
    }

    /// Deletes the node, and lifts the floor by one in the same step. This makes room for a token
    /// between the token of the lease and the next token. The next node may have been created right
    /// behind the node of the lease.
    ///
    /// `lost` is an earlier change whose answer was lost.
    async fn force_once(
        &self,
        resource: &ResourceName,
        token: FencingToken,
        lost: &Mutex<Option<Revocation>>,
    ) -> Result<Forced, Error> {
        let not_read = |failure: Failure| Error::from(failure).outcome_not_applied();
        let session = self.session().await?;
        for _ in 0..FORCE_ATTEMPTS {
            let first = self.first(&session, resource).await.map_err(not_read)?;
            let read = async || {
                let floor = self.floors.read(&session, &self.paths, resource).await;
                floor.map_err(not_read)
            };
            let held = first.and_then(|mut first| Some((first.note.take()?, first)));
            let held = match held {
                Some((note, first)) if floors::token(note.floor, first.created)? == token => first,
                _ => {
                    let lost = *lock(lost);
                    return Ok(match lost {
                        Some(lost) if lost.shows_in(&read().await?) => Forced::Ended {
                            revocation: lost.revocation,
                        },
                        _ => Forced::NotHeld,
                    });
                }
            };
            let floor = read().await?;
            let lifted = floor.value.saturating_add(1);
            let revocation = floors::token(lifted, held.created)?;
            let (path, note) = (self.paths.floor(resource), floors::encode(lifted));
            let directory = self.paths.directory(resource);
            // The directory comes before the node, because a client must be notified of the change
            // of the floor before it is notified that the node is gone.
            let changes = [
                Change::Touch(&directory),
                Change::Set(&path, &note, floor.own),
                Change::Delete(&held.path, held.version),
            ];
            match session.together(&changes).await {
                Ok(()) => {
                    self.floors.forget_version(resource);
                    return Ok(Forced::Ended { revocation });
                }
                Err(Failure::BadVersion | Failure::NoNode) => {}
                Err(failure) => {
                    *lock(lost) = Some(Revocation {
                        revocation,
                        lifted,
                        version: floor.own,
                    });
                    return Err(failure.into());
                }
            }
        }
        let why = "its holder is changing it all the time";
        Err(Error::not_applied(ErrorKind::Unavailable).because(why))
    }
}

/// A change by force.
#[derive(Clone, Copy, Debug)]
struct Revocation {
    revocation: FencingToken,
    lifted: u64,
    /// The version that the floor had before.
    version: i32,
}

impl Revocation {
    /// Whether the floor shows that the change was made.
    const fn shows_in(&self, floor: &Floor) -> bool {
        floor.value == self.lifted && floor.own == self.version.wrapping_add(1)
    }
}
