//! Floors: the numbers that are added to the number of a transaction to make a token.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use super::{error::Failure, paths::Paths, session::Session, watch::Watch};
use lock_core::{
    Error, ErrorKind, FencingToken, InitialToken, ResourceName, backend::support::lock,
};

/// The number of floors that are remembered. A floor that is not remembered costs a round trip.
const REMEMBERED_MAX: usize = 10_000;

/// The floor of a resource as it was when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) value: u64,
    /// The version of its node, to change it.
    pub(super) own: i32,
    /// The transaction that last wrote the lock directory. A client that changes a floor
    /// writes the directory, too.
    pub(super) directory: i64,
    /// The session that read the floor, and that is notified of changes.
    session: i64,
}

impl Floor {
    /// Refuses a floor that is so far ahead that it must be a mistake.
    pub(super) fn check(
        &self,
        wanted: FencingToken,
        initial: InitialToken,
        unix_time: std::time::Duration,
    ) -> Result<(), Error> {
        // There were at least that many transactions.
        let last = self.value.saturating_add(self.directory.unsigned_abs());
        let greatest = initial.greatest_floor(last, unix_time);
        if wanted.get() <= greatest {
            return Ok(());
        }
        let error = Error::not_applied(ErrorKind::FloorImplausible);
        Err(error.because(format!("at most {greatest} is plausible now")))
    }
}

/// Computes the token of a node.
pub(super) fn token(floor: u64, created: i64) -> Result<FencingToken, Error> {
    let number = u64::try_from(created)
        .ok()
        .and_then(|number| number.checked_add(floor));
    let token = number.and_then(|number| FencingToken::new(number).ok());
    token.ok_or_else(|| Error::not_applied(ErrorKind::TokensExhausted))
}

/// The floors that were read, so that an acquire need not read them.
///
/// When a lock directory is written or deleted, the servers notify the client before they answer
/// any later request. So when an answer has arrived, the client knows whether a remembered floor
/// was still right when the answer was given.
#[derive(Debug)]
pub(super) struct Floors {
    initial: InitialToken,
    remembered: Mutex<HashMap<ResourceName, Known>>,
}

/// The memory of a resource, until its lock directory is written or the session is over.
#[derive(Debug)]
struct Known {
    floor: Floor,
    /// A watch of the lock directory.
    watch: Watch,
    /// Whether this client has changed the floor since.
    is_old: bool,
    /// The number that the next contender of this client gets if the queue is empty and no other
    /// client comes first.
    next: Option<i32>,
    /// Whether another client came first the last time.
    is_busy: bool,
}

impl Known {
    /// Whether the floor is still right. The session has to be the same, because another session
    /// may be notified of a change later than this session has its answers.
    fn is_still(&self, floor: &Floor) -> bool {
        let is_same = |floor: &Floor| (floor.session, floor.directory);
        is_same(&self.floor) == is_same(floor) && !self.is_old && !self.watch.has_fired()
    }
}

impl Floors {
    pub(super) fn new(initial: InitialToken) -> Self {
        Self {
            initial,
            remembered: Mutex::new(HashMap::new()),
        }
    }

    pub(super) const fn initial(&self) -> InitialToken {
        self.initial
    }

    /// The floor as it was last read. If it was not read yet, reads it, and makes it and the lock
    /// directory if they are missing.
    pub(super) async fn remembered(
        &self,
        session: &Session,
        paths: &Paths,
        resource: &ResourceName,
    ) -> Result<Floor, Failure> {
        let remembered = self.all().get(resource).and_then(|known| {
            let is_so = known.floor.session == session.id() && known.is_still(&known.floor);
            is_so.then_some(known.floor)
        });
        match remembered {
            Some(floor) => Ok(floor),
            None => self.read(session, paths, resource).await,
        }
    }

    /// Whether, as far as the last answer shows, a floor is still what it was when it was read.
    pub(super) fn is_still(&self, resource: &ResourceName, floor: &Floor) -> bool {
        let all = self.all();
        all.get(resource).is_some_and(|known| known.is_still(floor))
    }

    /// Whether the next contender is likely to be the first, and its number will show it.
    pub(super) fn is_quiet(&self, resource: &ResourceName, floor: &Floor) -> bool {
        let all = self.all();
        let known = all.get(resource);
        let is_quiet = |known: &Known| !known.is_busy && known.next.is_some();
        known.is_some_and(|known| is_quiet(known) && known.is_still(floor))
    }

    /// Whether the number of a contender that was just created shows that it is the first in the
    /// queue: all contenders up to the last one of this client are gone, and no client has come in
    /// between.
    pub(super) fn is_first(&self, resource: &ResourceName, floor: &Floor, number: i32) -> bool {
        let mut all = self.all();
        let Some(known) = all.get_mut(resource) else {
            return false;
        };
        let is_first = known.is_still(floor) && known.next == Some(number);
        known.is_busy = !is_first;
        is_first
    }

    /// Notes that a contender that was the first is gone, and all before it. When it was created,
    /// `directory` was the last transaction that had written the lock directory.
    pub(super) fn is_gone(&self, resource: &ResourceName, number: i32, directory: i64) {
        if let Some(known) = self.all().get_mut(resource)
            && known.floor.directory == directory
        {
            known.next = Some(number.wrapping_add(1));
        }
    }

    /// Reads the present floor.
    pub(super) async fn read(
        &self,
        session: &Session,
        paths: &Paths,
        resource: &ResourceName,
    ) -> Result<Floor, Failure> {
        let (path, directory) = (paths.floor(resource), paths.directory(resource));
        loop {
            // The directory is read first, so that a change after this look is noticed later.
            let directory = session.watched_data(&directory);
            let own = session.data(&path);
            let (directory, own) = tokio::join!(directory, own);
            let (Some((_, directory, watcher)), Some((own, own_stat))) =
                (unless_gone(directory)?, unless_gone(own)?)
            else {
                self.make(session, paths, resource).await?;
                continue;
            };
            let floor = Floor {
                value: decode(&own)?,
                own: own_stat.version,
                directory: directory.mzxid,
                session: session.id(),
            };
            let known = Known {
                floor,
                watch: Watch::new(watcher),
                is_old: false,
                next: None,
                is_busy: false,
            };
            self.remember(resource, known);
            return Ok(floor);
        }
    }

    /// Creates the nodes that a resource needs: its floor, which is not lower than the last known
    /// floor, and its lock directory.
    pub(super) async fn make(
        &self,
        session: &Session,
        paths: &Paths,
        resource: &ResourceName,
    ) -> Result<(), Failure> {
        let first = match self.initial {
            InitialToken::Clock => 0,
            InitialToken::At(token) => token.get(),
        };
        let value = self
            .all()
            .remove(resource)
            .map_or(first, |known| known.floor.value);
        session.create_directory(&paths.directory(resource)).await?;
        session.create_directory(paths.floors()).await?;
        unless_there(session.create(&paths.floor(resource), &encode(value)).await)
    }

    /// Forgets the version of the node, because this client has changed the node. Its floor is
    /// known, but its version is not.
    pub(super) fn forget_version(&self, resource: &ResourceName) {
        if let Some(known) = self.all().get_mut(resource) {
            known.is_old = true;
        }
    }

    fn remember(&self, resource: &ResourceName, known: Known) {
        let mut all = self.all();
        if all.len() >= REMEMBERED_MAX && !all.contains_key(resource) {
            all.clear();
        }
        all.insert(resource.clone(), known);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ResourceName, Known>> {
        lock(&self.remembered)
    }
}

fn unless_gone<T>(read: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Failure::NoNode) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn unless_there(created: Result<(), Failure>) -> Result<(), Failure> {
    match created {
        Ok(()) | Err(Failure::NodeExists) => Ok(()),
        Err(failure) => Err(failure),
    }
}

pub(super) fn encode(floor: u64) -> Vec<u8> {
    floor.to_string().into_bytes()
}

pub(super) fn decode(data: &[u8]) -> Result<u64, Failure> {
    let number = str::from_utf8(data).ok().and_then(|text| text.parse().ok());
    number.ok_or(Failure::FloorBroken)
}
