//! Waiting in the queue, and what happens when the entry is the first: it becomes a lease.

use std::{cmp, pin::pin, sync::Arc};

use zookeeper_client::Stat;

use super::{
    acquiring::{Acquiring, released},
    entry::{Entry, Stop, View},
    error::Failure,
    floors::{self, Floor},
    session::Change,
    table::{Begun, Hold},
    waiting::{Watches, Woken},
};
use lock_core::{
    Attempt, Error, ErrorKind, FencingToken,
    backend::{Grant, Lease, Wait},
};

/// How often a floor that others keep changing is read again.
const BIND_ATTEMPTS: u32 = 20;

impl Acquiring<'_> {
    /// Waits in the queue for as long as the request says.
    pub(super) async fn until_first(
        &mut self,
        mut entry: Entry<'_>,
        floor: Floor,
        mut view: Option<View>,
    ) -> Result<Attempt<Grant>, Stop> {
        let mut watches = Watches::new(&entry.session);
        loop {
            // It is enabled before the table is read, so that no grant is missed.
            let mut granted = pin!(self.service.granted.notified());
            granted.as_mut().enable();
            let (attempt, now) = (&self.request.attempt, self.service.clock.now());
            let begun = self.service.table().begin(attempt, now);
            match begun {
                Begun::Ended => return Err(released().into()),
                Begun::Held(hold) => {
                    entry.leave().await?;
                    return self.replay(&hold).await;
                }
                Begun::New => {}
            }
            let seen = match view.take() {
                Some(view) => view,
                None => match entry.look().await {
                    Ok(view) => view,
                    Err(failure) => {
                        self.bear(failure)?;
                        continue;
                    }
                },
            };
            self.heard();
            entry.own = seen.own;
            if !entry.is_ours(seen.own) {
                return Err(Stop::Gone);
            }
            let ahead = seen.queue.ahead_of(entry.name()).ok_or(Stop::Gone)?;
            let Some(ahead) = ahead else {
                entry.watch = watches.into_own();
                return self.first(entry, floor, &seen).await;
            };
            if let Some(most) = self.request.max_waiters
                && self.request.wait != Wait::Never
                && ahead.count > usize::try_from(most).unwrap_or(usize::MAX)
            {
                entry.leave().await?;
                let full = Error::not_applied(ErrorKind::QueueFull);
                return Err(full.into());
            }
            if self.request.wait.is_over(self.service.clock.now()) {
                let first = seen.queue.first().unwrap_or(ahead.next);
                let (session, directory) = (Arc::clone(&entry.session), entry.directory.clone());
                entry.leave().await?;
                return Ok(self.held(&session, &directory, first).await);
            }
            tokio::select! {
                biased;
                waited = self.wait_for(&entry, &mut watches, ahead) => match waited {
                    Ok(Woken::First) => view = Some(View::alone(&entry)),
                    Ok(Woken::Perhaps) => {}
                    Err(failure) => self.bear(failure)?,
                },
                () = granted => {}
            }
            self.waited = true;
        }
    }

    /// The entry is the first: it becomes a lease.
    async fn first(
        &mut self,
        mut entry: Entry<'_>,
        floor: Floor,
        seen: &View,
    ) -> Result<Attempt<Grant>, Stop> {
        let own = seen.own.ok_or(Stop::Gone)?;
        let (service, ttl) = (self.service, self.request.ttl.get());
        let mut token = floors::token(entry.note.floor, own.czxid)?;
        let is_enough = self.request.floor.is_none_or(|wanted| wanted <= token);
        let resource = &self.request.attempt.resource;
        let is_same = service.floors.is_still(resource, &floor);
        if !is_enough || !is_same {
            token = self.bind(&mut entry, own).await?;
        } else if service.clock.now().since(entry.written) > ttl / 4 {
            // It has waited for so long that little is left of the ttl that others grant it.
            let now = service.clock.now();
            let data = entry.note.encode();
            match entry.session.set_data(&entry.path, &data, None).await {
                Ok(_) => entry.written = now,
                Err(Failure::NoNode) => return Err(Stop::Gone),
                Err(failure) => return Err(failure.into()),
            }
        }
        self.grant(entry, token, floor.directory)
    }

    /// Writes the floor that counts into the node, and into that of the resource if it has a lower
    /// one. The same step checks that the node is still there, so a client that has lost its lease
    /// cannot do it.
    async fn bind(&mut self, entry: &mut Entry<'_>, own: Stat) -> Result<FencingToken, Stop> {
        let (service, resource) = (self.service, &self.request.attempt.resource);
        let wanted = self.request.floor.map_or(0, FencingToken::get);
        let least = wanted.saturating_sub(own.czxid.unsigned_abs());
        let mut version = own.version;
        for _ in 0..BIND_ATTEMPTS {
            let session = Arc::clone(&entry.session);
            let floor = service.floors.read(&session, &service.paths, resource);
            let floor = floor.await?;
            entry.note.floor = cmp::max(floor.value, least);
            let token = floors::token(entry.note.floor, own.czxid)?;
            let written = service.clock.now();
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
                Err(failure) => self.bear(failure)?,
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
        mut entry: Entry<'_>,
        token: FencingToken,
        directory: i64,
    ) -> Result<Attempt<Grant>, Stop> {
        let (service, ttl) = (self.service, self.request.ttl.get());
        let deadline = entry.written + ttl;
        let hold = Hold::new(
            entry.attempt.holder,
            Arc::clone(&entry.session),
            Arc::from(entry.path.as_str()),
            entry.note.clone(),
            token,
            deadline,
            directory,
        )
        .watched(entry.watch.take());
        let now = service.clock.now();
        let (is_held, others_wait) =
            service
                .table()
                .hold(entry.attempt, &entry.identity, hold, now);
        if !is_held {
            return Err(released().into());
        }
        entry.is_kept = true;
        service.reaper.notify_one();
        if others_wait {
            service.granted.notify_waiters();
        }
        if !self.waited {
            let lease = Lease::counted_from(entry.written, ttl);
            return Ok(Attempt::Granted(Grant::new(token, lease)));
        }
        let lease = Lease::counted_from(now, deadline.since(now));
        Ok(Attempt::Granted(Grant::new(token, lease).after_waiting()))
    }
}
