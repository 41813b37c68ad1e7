//! A place in line: waiting in it, and what happens when it is the first.

use std::{cmp, pin::pin, sync::Arc};

use zookeeper_client::Stat;

use super::{
    KIND,
    acquire::{Acquiring, released},
    error::Failure,
    floors::{self, Floor},
    line::{Identity, Line},
    note::Note,
    service::Service,
    session::{Change, Session},
    table::{Begun, Hold},
    waiting::{Watches, Woken},
    watch::Watch,
};
use lock_core::{
    Attempt, AttemptRef, Error, ErrorKind, FencingToken, Grant, Lease, Moment, Operation, Wait,
};

/// How often a floor that others keep changing is read again.
const BIND_ATTEMPTS: u32 = 20;

/// Why an acquire cannot go on as it was.
#[derive(Debug)]
pub(super) enum Stop {
    /// The node is gone, and the place in line or the lease with it.
    Gone,
    Failed(Failure),
    Refused(Error),
}

impl Stop {
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Gone => Error::not_applied(ErrorKind::Unavailable, Operation::Acquire, KIND)
                .because("the place in line was deleted"),
            Self::Failed(failure) => failure.into_error(Operation::Acquire),
            Self::Refused(error) => error,
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

/// A node in line. If this is dropped, the keeper deletes it.
#[derive(Debug)]
pub(super) struct Place<'a> {
    service: &'a Service,
    attempt: &'a AttemptRef,
    pub(super) session: Arc<Session>,
    identity: Identity,
    pub(super) directory: String,
    pub(super) floor_path: String,
    pub(super) note: Note,
    /// A moment before the node was last written: its lease is counted from here.
    pub(super) written: Moment,
    pub(super) path: String,
    /// As it was when it was created or last looked at.
    pub(super) own: Option<Stat>,
    /// A watch of its node, if it waited.
    watch: Option<Arc<Watch>>,
    is_kept: bool,
}

/// What one look at the line shows.
#[derive(Debug)]
pub(super) struct View {
    line: Line,
    own: Option<Stat>,
}

impl View {
    pub(super) fn new(nodes: Vec<String>, own: Option<Stat>) -> Self {
        Self {
            line: Line::new(nodes),
            own,
        }
    }

    /// The view of a place that is known to be the first without a look.
    pub(super) fn alone(place: &Place<'_>) -> Self {
        Self::new(vec![place.name().to_owned()], place.own)
    }
}

impl<'a> Place<'a> {
    /// Comes before anything is sent: from here on it is known what may have to be deleted. `None`
    /// if the attempt has ended.
    pub(super) fn enter(
        service: &'a Service,
        attempt: &'a AttemptRef,
        session: &Arc<Session>,
        note: Note,
    ) -> Option<Self> {
        let identity = Identity::fresh(attempt.id);
        let entered = service
            .table()
            .enter(attempt, Arc::clone(session), identity.clone());
        entered.then(|| Self {
            service,
            attempt,
            session: Arc::clone(session),
            identity,
            directory: service.paths.line(&attempt.resource),
            floor_path: service.paths.floor(&attempt.resource),
            note,
            written: service.clock.now(),
            path: String::new(),
            own: None,
            watch: None,
            is_kept: false,
        })
    }

    /// Sends the creation of the node. `None` if the attempt was cancelled.
    ///
    /// Checking that and sending are one step: a cancel that comes later asks the servers later,
    /// and finds the node.
    pub(super) fn create<'b>(
        &self,
        session: &'b Session,
        prefix: &'b str,
    ) -> Option<impl Future<Output = Result<(String, Stat), Failure>> + use<'b>> {
        let table = self.service.table();
        let is_wanted = table.is_wanted(self.attempt.id, &self.identity);
        is_wanted.then(|| session.create_contender(prefix, &self.note.encode()))
    }

    pub(super) fn prefix(&self) -> String {
        format!("{}/{}", self.directory, self.identity.as_str())
    }

    /// The path of the node, if it is among those of the line.
    pub(super) fn find(&self, nodes: &[String]) -> Option<String> {
        let node = self.identity.find(nodes)?;
        Some(format!("{}/{node}", self.directory))
    }

    pub(super) fn created(&mut self, path: String, own: Option<Stat>) {
        self.path = path;
        self.own = own;
    }

    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Looks at the line and at the node itself, in one round trip.
    async fn look(&self) -> Result<View, Failure> {
        let nodes = self.session.children(&self.directory);
        let own = self.session.stat(&self.path);
        let (nodes, own) = tokio::join!(nodes, own);
        match nodes {
            Ok(nodes) => Ok(View::new(nodes, own?)),
            Err(Failure::NoNode) => Ok(View::new(Vec::new(), None)),
            Err(failure) => Err(failure),
        }
    }

    /// Whether a look shows the node, and shows that it belongs to this session.
    fn is_ours(&self, own: Option<Stat>) -> bool {
        own.is_some_and(|stat| stat.ephemeral_owner == self.session.id())
    }

    /// Deletes the node.
    async fn leave(mut self) -> Result<(), Failure> {
        match self.session.delete(&self.path, None).await {
            Ok(()) | Err(Failure::NoNode | Failure::SessionOver(_)) => {
                self.is_kept = true;
                self.service.table().leave(self.attempt.id, &self.identity);
                Ok(())
            }
            Err(failure) => Err(failure),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            let (session, identity) = (Arc::clone(&self.session), self.identity.clone());
            self.service
                .table()
                .abandon(self.attempt, session, identity);
            self.service.keeper.notify_one();
        }
    }
}

impl Acquiring<'_> {
    /// Waits in line for as long as the request says.
    pub(super) async fn until_first(
        &mut self,
        mut place: Place<'_>,
        floor: Floor,
        mut view: Option<View>,
    ) -> Result<Attempt<Grant>, Stop> {
        let mut watches = Watches::new(&place.session);
        loop {
            // It is enabled before the table is read, so that no grant is missed.
            let mut granted = pin!(self.service.granted.notified());
            granted.as_mut().enable();
            let (attempt, now) = (&self.request.attempt, self.service.clock.now());
            let begun = self.service.table().begin(attempt, now);
            match begun {
                Begun::Ended => return Err(released().into()),
                Begun::Held(hold) => {
                    place.leave().await?;
                    return self.replay(&hold).await;
                }
                Begun::New => {}
            }
            let seen = match view.take() {
                Some(view) => view,
                None => match place.look().await {
                    Ok(view) => view,
                    Err(failure) => {
                        self.bear(failure)?;
                        continue;
                    }
                },
            };
            self.heard();
            place.own = seen.own;
            if !place.is_ours(seen.own) {
                return Err(Stop::Gone);
            }
            let ahead = seen.line.ahead_of(place.name()).ok_or(Stop::Gone)?;
            let Some(ahead) = ahead else {
                place.watch = watches.into_own();
                return self.first(place, floor, &seen).await;
            };
            if let Some(most) = self.request.max_waiters
                && self.request.wait != Wait::Never
                && ahead.count > usize::try_from(most).unwrap_or(usize::MAX)
            {
                place.leave().await?;
                let full = Error::not_applied(ErrorKind::QueueFull, Operation::Acquire, KIND);
                return Err(full.into());
            }
            if self.request.wait.is_over(self.service.clock.now()) {
                let first = seen.line.first().unwrap_or(ahead.next);
                let (session, directory) = (Arc::clone(&place.session), place.directory.clone());
                place.leave().await?;
                return Ok(self.held(&session, &directory, first).await);
            }
            tokio::select! {
                biased;
                waited = self.wait_for(&place, &mut watches, ahead) => match waited {
                    Ok(Woken::First) => view = Some(View::alone(&place)),
                    Ok(Woken::Perhaps) => {}
                    Err(failure) => self.bear(failure)?,
                },
                () = granted => {}
            }
            self.waited = true;
        }
    }

    /// The place is the first: it becomes a lease.
    async fn first(
        &mut self,
        mut place: Place<'_>,
        floor: Floor,
        seen: &View,
    ) -> Result<Attempt<Grant>, Stop> {
        let own = seen.own.ok_or(Stop::Gone)?;
        let (service, ttl) = (self.service, self.request.ttl.get());
        let mut token = floors::token(place.note.floor, own.czxid, Operation::Acquire)?;
        let is_enough = self.request.floor.is_none_or(|wanted| wanted <= token);
        let resource = &self.request.attempt.resource;
        let is_same = service.floors.is_still(resource, &floor);
        if !is_enough || !is_same {
            token = self.bind(&mut place, own).await?;
        } else if service.clock.now().since(place.written) > ttl / 4 {
            // It has waited for so long that little is left of the ttl that others grant it.
            let now = service.clock.now();
            let data = place.note.encode();
            match place.session.set_data(&place.path, &data, None).await {
                Ok(_) => place.written = now,
                Err(Failure::NoNode) => return Err(Stop::Gone),
                Err(failure) => return Err(failure.into()),
            }
        }
        self.grant(place, token, floor.directory)
    }

    /// Writes the floor that counts into the node, and into that of the resource if it has a lower
    /// one. The same step checks that the node is still there, so a client that has lost its lease
    /// cannot do it.
    async fn bind(&mut self, place: &mut Place<'_>, own: Stat) -> Result<FencingToken, Stop> {
        let (service, resource) = (self.service, &self.request.attempt.resource);
        let wanted = self.request.floor.map_or(0, FencingToken::get);
        let least = wanted.saturating_sub(own.czxid.unsigned_abs());
        let mut version = own.version;
        for _ in 0..BIND_ATTEMPTS {
            let session = Arc::clone(&place.session);
            let floor = service.floors.read(&session, &service.paths, resource);
            let floor = floor.await?;
            place.note.floor = cmp::max(floor.value, least);
            let token = floors::token(place.note.floor, own.czxid, Operation::Acquire)?;
            let written = service.clock.now();
            let (note, raised) = (place.note.encode(), floors::encode(place.note.floor));
            let is_raised = place.note.floor > floor.value;
            let mut changes = vec![Change::Set(&place.path, &note, version)];
            if is_raised {
                changes.push(Change::Set(&place.floor_path, &raised, floor.own));
                changes.push(Change::Touch(&place.directory));
            } else {
                changes.push(Change::Check(&place.floor_path, floor.own));
            }
            match session.together(&changes).await {
                Ok(()) => {
                    place.written = written;
                    if is_raised {
                        service.floors.forget_version(resource);
                    }
                    return Ok(token);
                }
                Err(Failure::BadVersion | Failure::NoNode) => {}
                Err(failure) => self.bear(failure)?,
            }
            let own = session.stat(&place.path).await?;
            version = match own.filter(|_| place.is_ours(own)) {
                Some(own) => own.version,
                None => return Err(Stop::Gone),
            };
        }
        let why = "its floor is being changed all the time";
        let error =
            Error::not_applied(ErrorKind::Unavailable, Operation::Acquire, KIND).because(why);
        Err(error.into())
    }

    fn grant(
        &self,
        mut place: Place<'_>,
        token: FencingToken,
        directory: i64,
    ) -> Result<Attempt<Grant>, Stop> {
        let (service, ttl) = (self.service, self.request.ttl.get());
        let deadline = place.written + ttl;
        let hold = Hold::new(
            Arc::clone(&place.session),
            Arc::from(place.path.as_str()),
            place.note.clone(),
            token,
            deadline,
            directory,
            place.watch.take(),
        );
        let (is_held, others_wait) = service.table().hold(place.attempt, &place.identity, hold);
        if !is_held {
            return Err(released().into());
        }
        place.is_kept = true;
        service.keeper.notify_one();
        if others_wait {
            service.granted.notify_waiters();
        }
        if !self.waited {
            let lease = Lease::counted_from(place.written, ttl);
            return Ok(Attempt::Granted(Grant::new(token, lease)));
        }
        let now = service.clock.now();
        let lease = Lease::counted_from(now, deadline.since(now));
        Ok(Attempt::Granted(Grant::new(token, lease).after_waiting()))
    }
}
