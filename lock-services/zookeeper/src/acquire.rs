//! The requests of one attempt to acquire: a node in the queue, until it is the first.

use std::{
    cmp::{max, min},
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::OptionFuture;
use tokio::sync::{self, Notify, watch};

use super::{
    entry::{Entry, Stop, View},
    error::Failure,
    floors::Floor,
    note::Note,
    queue::{self, Ahead, Queue},
    service::Service,
    session::Session,
    table::{Begun, Hold},
    waiting::Watches,
};
use lock_core::{
    Error, ErrorKind, Ttl,
    backend::{
        AcquireRequest, Grant, Lease, Moment, Reply, Request, Requests, Wake,
        support::{End, lock},
    },
};

/// The number of times that a directory is made again that another client deletes.
const DIRECTORY_ATTEMPTS: u32 = 3;

/// The time that an ensemble needs for an election, or a client for its first session.
const ELECTION: Duration = Duration::from_secs(4);

/// The time after which a waiter looks again although no watch has fired.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// The requests of one attempt.
#[derive(Debug)]
pub(super) struct Attempting<'a> {
    pub(super) service: &'a Service,
    pub(super) request: &'a AcquireRequest,
    /// The place. It is locked while a request is under way, and while the attempt waits to be
    /// woken.
    place: sync::Mutex<Option<Place<'a>>>,
    /// Notifies the wait that a request needs the place.
    sends: Notify,
    /// Changes when an acquisition was granted for which another attempt waits. It is marked as
    /// seen before the table is read, so that no grant is missed.
    granted: Mutex<watch::Receiver<()>>,
}

/// The place of an attempt in the queue.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) entry: Entry<'a>,
    /// The floor with which the node was made. `None` if the node may have another floor by now.
    pub(super) floor: Option<Floor>,
    pub(super) watches: Watches,
}

impl<'a> Attempting<'a> {
    pub(super) fn new(service: &'a Service, request: &'a AcquireRequest) -> Self {
        Self {
            service,
            request,
            place: sync::Mutex::default(),
            sends: Notify::new(),
            granted: Mutex::new(service.granted.subscribe()),
        }
    }

    async fn look(&self, place: &mut Option<Place<'a>>, queue: bool) -> Result<Reply, Stop> {
        let (service, attempt) = (self.service, &self.request.attempt);
        if place.is_none() {
            service.clear(&attempt.resource).await;
        }
        let asked = service.runtime.now();
        lock(&self.granted).mark_unchanged();
        let begun = service.table().begin(attempt, asked);
        match begun {
            Begun::Ended => return Err(released().into()),
            Begun::Held(hold) => {
                if let Some(place) = place {
                    place.entry.leave().await?;
                }
                *place = None;
                return self.replay(&hold, asked).await;
            }
            Begun::New => {}
        }
        let it = match place {
            Some(it) => it,
            None => match self.enter(queue).await? {
                Ok(entered) => place.insert(entered),
                Err(held) => return Ok(held),
            },
        };
        let view = if it.watches.show_turn() {
            Some(View::alone(&it.entry))
        } else if it.entry.is_created().await? {
            None
        } else {
            self.create(it, asked).await?
        };
        let seen = match view {
            Some(view) => view,
            None => it.entry.look(it.watches.show_own()).await?,
        };
        it.entry.own = seen.own;
        let own = seen.own.filter(|_| it.entry.is_ours(seen.own));
        let own = own.ok_or(Stop::Gone)?;
        match seen.queue.ahead_of(it.entry.name()).ok_or(Stop::Gone)? {
            None => {
                let grant = self.first(it, own).await?;
                *place = None;
                Ok(Reply::Granted(grant))
            }
            Some(ahead) if queue => self.wait_behind(it, ahead).await,
            Some(ahead) => {
                let first = seen.queue.first().unwrap_or(ahead.next);
                let (session, directory) = (Arc::clone(&it.entry.session), &it.entry.directory);
                let directory = directory.clone();
                it.entry.leave().await?;
                *place = None;
                let left = self.left(&session, &directory, first).await;
                Ok(Reply::Held { left })
            }
        }
    }

    /// Takes a place, before anything is sent for it. Without `queue` it first looks at the queue,
    /// because a look costs the servers less than an entry. If the lease is held, the answer is
    /// `Held`.
    async fn enter(&self, queue: bool) -> Result<Result<Place<'a>, Reply>, Stop> {
        let (service, request) = (self.service, self.request);
        let (paths, resource) = (&service.paths, &request.attempt.resource);
        let session = service.session().await?;
        session.check(request.ttl)?;
        let floor = service.floors.remembered(&session, paths, resource).await?;
        if let Some(wanted) = request.floor {
            floor.check(
                wanted,
                service.floors.initial(),
                service.runtime.unix_time(),
            )?;
        }
        if !queue {
            let directory = paths.directory(resource);
            let nodes = match session.children(&directory).await {
                Err(Failure::NoNode) => Vec::new(),
                nodes => nodes?,
            };
            if let Some(first) = Queue::new(nodes).first() {
                let left = self.left(&session, &directory, first).await;
                return Ok(Err(Reply::Held { left }));
            }
        }
        let (holder, metadata) = (request.attempt.holder, request.metadata.clone());
        let note = Note::new(request.ttl, floor.value, holder, metadata);
        let entry = Entry::enter(service, &request.attempt, &session, note);
        Ok(Ok(Place {
            entry: entry.ok_or_else(released)?,
            floor: Some(floor),
            watches: Watches::new(&session),
        }))
    }

    /// Creates the node. If no other client came recently, the number of the node shows whether it
    /// is already the first. Otherwise a look at the queue shows this. The look is sent right
    /// behind the creation.
    async fn create(&self, place: &mut Place<'_>, asked: Moment) -> Result<Option<View>, Stop> {
        let (service, resource) = (self.service, &self.request.attempt.resource);
        let Place { entry, floor, .. } = place;
        let session = Arc::clone(&entry.session);
        let prefix = entry.prefix();
        let mut directories = 0;
        entry.written = asked;
        loop {
            let created = entry.create(&session, &prefix).ok_or_else(released)?;
            let is_quiet = floor.is_some_and(|floor| service.floors.is_quiet(resource, &floor));
            let nodes = (!is_quiet).then(|| session.children(&entry.directory));
            let (created, nodes) = tokio::join!(created, OptionFuture::from(nodes));
            match created {
                Ok((path, stat)) => {
                    entry.created(path, stat);
                    let number = queue::number(entry.name());
                    let is_first =
                        |(floor, number)| service.floors.is_first(resource, &floor, number);
                    if floor.zip(number).is_some_and(is_first) {
                        return Ok(Some(View::alone(entry)));
                    }
                    let nodes = nodes.and_then(Result::ok);
                    return Ok(nodes.map(|nodes| View::new(nodes, Some(stat))));
                }
                Err(Failure::NoNode) if directories < DIRECTORY_ATTEMPTS => {
                    directories += 1;
                    let floors = &service.floors;
                    floors.make(&session, &service.paths, resource).await?;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// Watches the nodes before the entry. Deletes the predecessor if its lease has run out.
    async fn wait_behind(&self, place: &mut Place<'_>, ahead: Ahead<'_>) -> Result<Reply, Stop> {
        let most = self.request.max_waiters.map(usize::try_from);
        if most.is_some_and(|most| ahead.count > most.unwrap_or(usize::MAX)) {
            let full = Error::not_applied(ErrorKind::QueueFull);
            return Err(full.into());
        }
        let Place { entry, watches, .. } = place;
        let is_set = watches.set(entry, ahead).await?;
        let now = self.service.runtime.now();
        let silent_until = watches.silent_until(now);
        let Some(predecessor) = watches.predecessor().filter(|_| is_set) else {
            return Ok(Reply::Queued {
                left: Ttl::MIN.get(),
                look_again: Duration::ZERO,
            });
        };
        if silent_until <= now {
            let (path, version) = (&predecessor.path, predecessor.version);
            match entry.session.delete(path, Some(version)).await {
                Ok(()) | Err(Failure::NoNode | Failure::BadVersion) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        let note = predecessor.note.as_ref();
        Ok(Reply::Queued {
            left: note.map_or(entry.session.longest_lease(), |note| note.ttl.get()),
            look_again: min(silent_until.since(now), LOOK_AGAIN),
        })
    }

    /// Answers an acquisition that was granted before. If its lease still exists, the answer is the
    /// lease with the time that is left.
    ///
    /// If the lease is gone, the table says why: the lease was lost, or the attempt that had it was
    /// cancelled. The acquisition has ended only if the lease was lost.
    async fn replay(&self, hold: &Hold, asked: Moment) -> Result<Reply, Stop> {
        let (service, attempt) = (self.service, &self.request.attempt);
        let is_ours = match hold.session.stat(&hold.path).await {
            Ok(stat) => stat.is_some_and(|stat| stat.ephemeral_owner == hold.session.id()),
            Err(Failure::SessionOver(_)) => false,
            Err(failure) => return Err(failure.into()),
        };
        let mut table = service.table();
        if !is_ours {
            let now = service.runtime.now();
            let (resource, holder) = (&attempt.resource, attempt.holder);
            table.end(resource, holder, hold.token, End::Over, now);
        }
        if !is_ours || !table.join(attempt, hold.token) {
            return Err(Stop::Gone);
        }
        let lease = Lease::counted_from(asked, hold.deadline.since(asked));
        Ok(Reply::Granted(Grant::new(hold.token, lease)))
    }

    /// The time that the lease of the first in the queue has left.
    async fn left(&self, session: &Session, directory: &str, first: &str) -> Duration {
        let path = format!("{directory}/{first}");
        let now = self.service.runtime.now();
        let resource = &self.request.attempt.resource;
        let ours = {
            let mut table = self.service.table();
            table.at(resource, &path, now).map(|hold| hold.deadline)
        };
        let left = match ours {
            Some(deadline) => deadline.since(now),
            None => match session.data(&path).await {
                Ok((data, _)) => Note::decode(&data)
                    .map_or_else(|| session.longest_lease(), |note| note.ttl.get()),
                Err(_) => Ttl::MIN.get(),
            },
        };
        max(left, Ttl::MIN.get())
    }

    /// The error of a look. A lost place is forgotten, so that the next look begins at the end of
    /// the queue, in the next session if this session is over. After a refusal the place is given
    /// up.
    async fn error(&self, place: &mut Option<Place<'a>>, stop: Stop) -> Error {
        let is_over = match (&stop, &mut *place) {
            (Stop::Gone | Stop::Failed(Failure::SessionOver(_)), _) => true,
            (Stop::Failed(Failure::Refused(_) | Failure::FloorBroken), Some(place)) => {
                place.entry.leave().await.is_ok()
            }
            (Stop::Refused(error), Some(place)) if error.kind() != ErrorKind::Unavailable => {
                place.entry.leave().await.is_ok()
            }
            _ => false,
        };
        if is_over {
            *place = None;
        }
        let attempt = &self.request.attempt;
        let begun = self
            .service
            .table()
            .begin(attempt, self.service.runtime.now());
        let error = match (stop, begun) {
            // A look has not found the lease, and the table says that the acquisition has ended.
            (Stop::Gone, Begun::Ended) => released(),
            (stop, _) => stop.into(),
        };
        match place {
            Some(_) => error.outcome_unknown(),
            None => error.outcome_not_applied(),
        }
    }

    /// Waits until a watch fires. Gives the place to a request that needs it, and goes on waiting
    /// after that.
    async fn watch_fired(&self) {
        loop {
            let mut place = self.place.lock().await;
            let Some(place) = &mut *place else {
                break;
            };
            tokio::select! {
                biased;
                () = place.watches.fired() => return,
                () = self.sends.notified() => {}
            }
        }
        // There is a place only after the next request.
        pending().await
    }
}

impl Requests for Attempting<'_> {
    fn longest_request(&self) -> Duration {
        ELECTION
    }

    async fn send(&self, request: Request) -> Result<Reply, Error> {
        self.sends.notify_waiters();
        let mut place = self.place.lock().await;
        let Request::Look { queue } = request else {
            self.service.cancel(&self.request.attempt).await?;
            // The cancel has deleted the node of the place.
            if let Some(mut place) = place.take() {
                place.entry.done();
            }
            return Ok(Reply::Cancelled);
        };
        match self.look(&mut place, queue).await {
            Ok(reply) => Ok(reply),
            Err(stop) => Err(self.error(&mut place, stop).await),
        }
    }

    async fn woken(&self) -> Wake {
        let mut granted = lock(&self.granted).clone();
        tokio::select! {
            biased;
            () = self.watch_fired() => {}
            Ok(()) = granted.changed() => lock(&self.granted).mark_unchanged(),
        }
        Wake::Look
    }
}

/// The error for an acquire whose acquisition has ended.
pub(super) fn released() -> Error {
    Error::not_applied(ErrorKind::Released)
}
