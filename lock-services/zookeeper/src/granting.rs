//! The step by which the first entry in the queue becomes a lease.

use std::{cmp::max, sync::Arc};

use zookeeper_client::Stat;

use super::{
    acquire::{Attempting, Place, released},
    entry::{Entry, Stop},
    error::Failure,
    floors,
    session::Change,
    table::Hold,
};
use lock_core::{
    Error, ErrorKind, FencingToken,
    backend::{Grant, Lease},
};

/// The number of times that a floor is read again if others keep changing it.
const BIND_ATTEMPTS: u32 = 20;

impl Attempting<'_> {
    pub(super) async fn first(&self, place: &mut Place<'_>, own: Stat) -> Result<Grant, Stop> {
        let (service, ttl) = (self.service, self.request.ttl.get());
        let Place { entry, floor, .. } = &mut *place;
        let mut token = floors::token(entry.note.floor, own.czxid)?;
        let is_enough = self.request.floor.is_none_or(|wanted| wanted <= token);
        let resource = &self.request.attempt.resource;
        let is_same = floor.is_some_and(|floor| service.floors.is_still(resource, &floor));
        let directory = floor.map_or(0, |floor| floor.directory);
        if !is_enough || !is_same {
            // If this has no answer, the next look does it again.
            *floor = None;
            token = self.bind(entry, own).await?;
        } else if service.runtime.now().since(entry.written) > ttl / 4 {
            // The entry has waited for so long that little is left of the ttl that others see.
            let now = service.runtime.now();
            let data = entry.note.encode();
            match entry.session.set_data(&entry.path, &data, None).await {
                Ok(_) => entry.written = now,
                Err(Failure::NoNode) => return Err(Stop::Gone),
                Err(failure) => return Err(failure.into()),
            }
        }
        self.grant(place, token, directory)
    }

    /// Writes the floor that counts into the node of the entry. If the floor of the resource is
    /// lower, it is raised. The same step checks that the node of the entry still exists, so a
    /// client that has lost its lease cannot do this.
    async fn bind(&self, entry: &mut Entry<'_>, own: Stat) -> Result<FencingToken, Stop> {
        let (service, resource) = (self.service, &self.request.attempt.resource);
        let wanted = self.request.floor.map_or(0, FencingToken::get);
        let least = wanted.saturating_sub(own.czxid.unsigned_abs());
        let session = Arc::clone(&entry.session);
        let mut version = own.version;
        for _ in 0..BIND_ATTEMPTS {
            let floor = service.floors.read(&session, &service.paths, resource);
            let floor = floor.await?;
            entry.note.floor = max(floor.value, least);
            let token = floors::token(entry.note.floor, own.czxid)?;
            let written = service.runtime.now();
            let (note, raised) = (entry.note.encode(), floors::encode(entry.note.floor));
            let is_raised = entry.note.floor > floor.value;
            let mut changes = vec![Change::Set(&entry.path, &note, version)];
            if is_raised {
                changes.push(Change::Set(&entry.floor_path, &raised, floor.own));
                changes.push(Change::Touch(&entry.directory));
            } else {
                changes.push(Change::Check(&entry.floor_path, floor.own));
            }
            match session.together(&changes).await {
                Ok(()) => {
                    entry.written = written;
                    if is_raised {
                        service.floors.forget_version(resource);
                    }
                    return Ok(token);
                }
                Err(Failure::BadVersion | Failure::NoNode) => {}
                Err(failure) => return Err(failure.into()),
            }
            let own = session.stat(&entry.path).await?;
            version = match own.filter(|_| entry.is_ours(own)) {
                Some(own) => own.version,
                None => return Err(Stop::Gone),
            };
        }
        let why = "its floor is being changed all the time";
        Err(Error::not_applied(ErrorKind::Unavailable)
            .because(why)
            .into())
    }

    fn grant(
        &self,
        place: &mut Place<'_>,
        token: FencingToken,
        directory: i64,
    ) -> Result<Grant, Stop> {
        let (service, ttl) = (self.service, self.request.ttl.get());
        let Place { entry, watches, .. } = place;
        let hold = Hold::new(
            entry.attempt.holder,
            Arc::clone(&entry.session),
            Arc::from(entry.path.as_str()),
            entry.note.clone(),
            token,
            entry.written + ttl,
            directory,
        )
        .watched(watches.take_own());
        let now = service.runtime.now();
        let (is_held, others_wait) =
            service
                .table()
                .hold(entry.attempt, &entry.identity, hold, now);
        if !is_held {
            return Err(released().into());
        }
        entry.done();
        service.reaper.notify_one();
        if others_wait {
            service.granted.send_replace(());
        }
        let lease = Lease::counted_from(entry.written, ttl);
        Ok(Grant::new(token, lease))
    }
}
