//! What is added to the number of a transaction to make a token of it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use zookeeper_client::Stat;

use super::{error::Failure, paths::Paths, session::Session};
use crate::{Error, ErrorKind, FencingToken, InitialToken, Operation, ResourceName};

/// So many floors are remembered. One that is not costs a round trip.
const REMEMBERED_MAX: usize = 10_000;

/// A floor as it was when it was read: that of the resource or that of the service, whichever is
/// higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) value: u64,
    /// Whether the service was taken out of service.
    pub(super) retired: bool,
    /// The version of the resource's node, to change it.
    pub(super) own: i32,
    /// That of the service's node.
    pub(super) service: i32,
    /// The transaction that has last written the lock directory: whoever changes a floor does.
    directory: i64,
    /// It has been changed by us since.
    is_old: bool,
}

impl Floor {
    /// Whether this is still so, going by a later look at the lock directory.
    pub(super) const fn is(&self, directory: Stat) -> bool {
        directory.mzxid == self.directory
    }

    /// Refuses a floor that must be a mistake.
    pub(super) fn check(
        &self,
        wanted: FencingToken,
        initial: InitialToken,
        unix_time: std::time::Duration,
    ) -> Result<(), Error> {
        // At least so many transactions there were.
        let last = self.value.saturating_add(self.directory.unsigned_abs());
        let greatest = initial.greatest_floor(last, unix_time);
        if wanted.get() <= greatest {
            return Ok(());
        }
        let error = Error::new(ErrorKind::FloorImplausible, Operation::Acquire, super::KIND);
        Err(error.because(format!("at most {greatest} is plausible now")))
    }
}

/// Adds up the token of a node.
pub(super) fn token(floor: u64, created: i64, operation: Operation) -> Result<FencingToken, Error> {
    let number = u64::try_from(created)
        .ok()
        .and_then(|number| number.checked_add(floor));
    let token = number.and_then(|number| FencingToken::new(number).ok());
    token.ok_or_else(|| Error::new(ErrorKind::TokensExhausted, operation, super::KIND))
}

/// The floors that were read, so that an acquire need not.
#[derive(Debug)]
pub(super) struct Floors {
    initial: InitialToken,
    remembered: Mutex<HashMap<ResourceName, Floor>>,
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

    /// The floor as it was last read. Reads it, and makes it and the lock directory, if it was not.
    pub(super) async fn remembered(
        &self,
        session: &Session,
        paths: &Paths,
        resource: &ResourceName,
    ) -> Result<Floor, Failure> {
        let remembered = self.all().get(resource).copied();
        match remembered {
            Some(floor) if !floor.is_old && !floor.retired => Ok(floor),
            _ => self.read(session, paths, resource).await,
        }
    }

    /// The floor as it is.
    pub(super) async fn read(
        &self,
        session: &Session,
        paths: &Paths,
        resource: &ResourceName,
    ) -> Result<Floor, Failure> {
        let (path, directory) = (paths.floor(resource), paths.line(resource));
        loop {
            // The directory first: a change that comes after this look at it is noticed later.
            let directory = session.stat(&directory);
            let own = session.data(&path);
            let service = session.data(paths.service());
            let (directory, own, service) = tokio::join!(directory, own, service);
            let (Some(directory), Some((own, own_stat)), Some((service, service_stat))) =
                (directory?, unless_gone(own)?, unless_gone(service)?)
            else {
                self.make(session, paths, resource).await?;
                continue;
            };
            let service = Standard::decode(&service)?;
            let floor = Floor {
                value: std::cmp::max(decode(&own)?, service.floor),
                retired: service.retired,
                own: own_stat.version,
                service: service_stat.version,
                directory: directory.mzxid,
                is_old: false,
            };
            self.remember(resource, floor);
            return Ok(floor);
        }
    }

    /// Makes what a resource needs: its floor, no lower than it is known to have been, and its lock
    /// directory.
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
            .map_or(first, |known| known.value);
        session.create_directory(&paths.line(resource)).await?;
        session.create_directory(paths.floors()).await?;
        Self::make_service(session, paths).await?;
        unless_there(session.create(&paths.floor(resource), &encode(value)).await)
    }

    /// Makes the node of the service, below which all others are.
    pub(super) async fn make_service(session: &Session, paths: &Paths) -> Result<(), Failure> {
        session.create_directory(paths.floors()).await?;
        let first = Standard::default().encode();
        unless_there(session.create(paths.service(), &first).await)
    }

    /// The node was changed by us: its floor is known, its version is not.
    pub(super) fn forget_version(&self, resource: &ResourceName) {
        if let Some(floor) = self.all().get_mut(resource) {
            floor.is_old = true;
        }
    }

    fn remember(&self, resource: &ResourceName, floor: Floor) {
        let mut all = self.all();
        if all.len() >= REMEMBERED_MAX && !all.contains_key(resource) {
            all.clear();
        }
        all.insert(resource.clone(), floor);
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ResourceName, Floor>> {
        // Every entry is whole at every moment.
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the node of the service says: `FLOOR`, or `FLOOR retired`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Standard {
    /// No resource has a lower one.
    pub(super) floor: u64,
    pub(super) retired: bool,
}

const RETIRED: &str = " retired";

impl Standard {
    pub(super) fn encode(self) -> Vec<u8> {
        let retired = if self.retired { RETIRED } else { "" };
        format!("{}{retired}", self.floor).into_bytes()
    }

    pub(super) fn decode(data: &[u8]) -> Result<Self, Failure> {
        let (floor, retired) = match data.strip_suffix(RETIRED.as_bytes()) {
            Some(floor) => (floor, true),
            None => (data, false),
        };
        Ok(Self {
            floor: decode(floor)?,
            retired,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_what_was_written() {
        for floor in [0, 7, u64::MAX] {
            for retired in [false, true] {
                let standard = Standard { floor, retired };
                assert_eq!(Standard::decode(&standard.encode()).unwrap(), standard);
            }
        }
        for broken in ["", " retired", "-1", "7 ", "7 retired "] {
            assert!(Standard::decode(broken.as_bytes()).is_err(), "{broken:?}");
        }
    }
}
