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

/// No transaction has this number.
const NOT_READ: i64 = -1;

/// A floor as it was when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Floor {
    pub(super) value: u64,
    /// Of its node, to change it.
    pub(super) version: i32,
    /// The transaction that has written it: no other floor has the same.
    written: i64,
}

impl Floor {
    /// Whether this is still what the node says, going by a later look at it.
    pub(super) fn is(&self, stat: Option<Stat>) -> bool {
        stat.is_some_and(|stat| stat.mzxid == self.written)
    }

    /// Refuses a floor that must be a mistake.
    pub(super) fn check(
        &self,
        wanted: FencingToken,
        initial: InitialToken,
        unix_time: std::time::Duration,
    ) -> Result<(), Error> {
        // At least so many transactions there were.
        let last = self.value.saturating_add(self.written.unsigned_abs());
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
            Some(floor) if floor.written != NOT_READ => Ok(floor),
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
        let path = paths.floor(resource);
        loop {
            match session.data(&path).await {
                Ok((data, stat)) => {
                    let floor = Floor {
                        value: decode(&data)?,
                        version: stat.version,
                        written: stat.mzxid,
                    };
                    self.remember(resource, floor);
                    return Ok(floor);
                }
                Err(Failure::NoNode) => self.make(session, paths, resource).await?,
                Err(failure) => return Err(failure),
            }
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
        match session.create(&paths.floor(resource), &encode(value)).await {
            Ok(()) | Err(Failure::NodeExists) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// The node was changed by us: its floor is known, its version is not.
    pub(super) fn forget_version(&self, resource: &ResourceName) {
        if let Some(floor) = self.all().get_mut(resource) {
            floor.written = NOT_READ;
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

pub(super) fn encode(floor: u64) -> Vec<u8> {
    floor.to_string().into_bytes()
}

fn decode(data: &[u8]) -> Result<u64, Failure> {
    let number = str::from_utf8(data).ok().and_then(|text| text.parse().ok());
    number.ok_or(Failure::FloorBroken)
}
