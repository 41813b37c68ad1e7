mod refused;

use std::{
    cmp::Ordering,
    future::Future,
    panic::Location,
    sync::{Mutex, MutexGuard},
};

pub use self::refused::Refused;
use super::pause::there_and_back;
use lock_core::{Sequencer, backend::support::lock};

/// A protected resource in memory: a value behind the store rule, for tests without a database.
///
/// Like a row of a fenced store the cell keeps a high-water mark: the grant that claimed the cell
/// last. A claim raises the mark if and only if its token is above the mark. A read or write is
/// accepted if and only if its grant is the grant of the mark: same issuer, token and holder. The
/// mark never falls, and a refusal changes nothing. The first claim binds the cell to its resource
/// and issuer.
///
/// Every operation except [`value`](FencedCell::value) has one await before its effect and one
/// after it, as if the cell were on the other side of a network, so a [pause](super::pause) can
/// land in both.
///
/// # Cancel safety
/// Every operation may or may not have taken effect. Claiming again is harmless.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lock_core::LockManager;
/// use lock_testing::{FencedCell, Refused};
///
/// # use std::sync::Arc;
/// # use lock_core::memory::MemoryBackend;
/// let locks = LockManager::builder().build(MemoryBackend::default())?;
/// let account = FencedCell::new(100);
///
/// let first = locks.acquire("account").await?;
/// account.claim(first.sequencer()).await?;
/// let stale = first.sequencer().clone();
/// first.release().await?;
///
/// let second = locks.acquire("account").await?;
/// account.claim(second.sequencer()).await?;
/// let refusal = account.write(&stale, 50).await;
/// assert!(matches!(refusal, Err(Refused::Stale { .. })));
/// assert_eq!(account.value(), 100);
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct FencedCell<T> {
    row: Mutex<Row<T>>,
}

#[derive(Debug, Default)]
struct Row<T> {
    value: T,
    mark: Option<Sequencer>,
}

impl<T> FencedCell<T> {
    /// A cell without a claim.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self {
            row: Mutex::new(Row { value, mark: None }),
        }
    }

    /// Raises the mark to this grant, so that no older holder can read or write from here on. Does
    /// nothing if the mark already has this grant.
    ///
    /// # Errors
    /// [`Refused`], except `NotClaimed`.
    #[track_caller]
    pub fn claim(&self, grant: &Sequencer) -> impl Future<Output = Result<(), Refused>> {
        there_and_back("claim", Some(Location::caller()), move || async move {
            self.row().claim(grant)
        })
    }

    /// The value, as long as no newer grant has claimed the cell.
    ///
    /// # Errors
    /// [`Refused`].
    #[track_caller]
    pub fn read(&self, grant: &Sequencer) -> impl Future<Output = Result<T, Refused>>
    where
        T: Clone,
    {
        there_and_back("read", Some(Location::caller()), move || async move {
            let row = self.row();
            row.enter(grant)?;
            Ok(row.value.clone())
        })
    }

    /// Replaces the value, as long as no newer grant has claimed the cell. Check and write are one
    /// step.
    ///
    /// # Errors
    /// [`Refused`].
    #[track_caller]
    pub fn write(&self, grant: &Sequencer, value: T) -> impl Future<Output = Result<(), Refused>> {
        there_and_back("write", Some(Location::caller()), move || async move {
            let mut row = self.row();
            row.enter(grant)?;
            row.value = value;
            Ok(())
        })
    }

    /// The value, without a grant, for the unfenced control of a test.
    #[track_caller]
    pub fn read_unfenced(&self) -> impl Future<Output = T>
    where
        T: Clone,
    {
        there_and_back("read", Some(Location::caller()), move || async move {
            self.value()
        })
    }

    /// Replaces the value, without a grant, for the unfenced control of a test.
    #[track_caller]
    pub fn write_unfenced(&self, value: T) -> impl Future<Output = ()> {
        there_and_back("write", Some(Location::caller()), move || async move {
            self.row().value = value;
        })
    }

    /// The value, without an await, for the invariant of a test.
    #[must_use]
    pub fn value(&self) -> T
    where
        T: Clone,
    {
        self.row().value.clone()
    }

    fn row(&self) -> MutexGuard<'_, Row<T>> {
        // A panic while cloning cannot leave the row half changed.
        lock(&self.row)
    }
}

impl<T> Row<T> {
    fn claim(&mut self, grant: &Sequencer) -> Result<(), Refused> {
        if self.compare(grant)? == Ordering::Greater {
            self.mark = Some(grant.clone());
        }
        Ok(())
    }

    fn enter(&self, grant: &Sequencer) -> Result<(), Refused> {
        match self.compare(grant)? {
            Ordering::Equal => Ok(()),
            _ => Err(Refused::NotClaimed {
                presented: grant.token(),
            }),
        }
    }

    /// Whether the grant equals the grant of the mark (equal) or is above it (greater). Refuses all
    /// other grants.
    fn compare(&self, grant: &Sequencer) -> Result<Ordering, Refused> {
        let Some(mark) = &self.mark else {
            return Ok(Ordering::Greater);
        };
        if mark.issuer() != grant.issuer() {
            return Err(Refused::WrongIssuer {
                presented: grant.issuer().clone(),
                current: mark.issuer().clone(),
            });
        }
        if mark.resource() != grant.resource() {
            return Err(Refused::WrongResource {
                presented: grant.resource().clone(),
                current: mark.resource().clone(),
            });
        }
        let presented = grant.token();
        match presented.cmp(&mark.token()) {
            Ordering::Less => Err(Refused::Stale {
                presented,
                high_water: mark.token(),
            }),
            Ordering::Equal if mark.holder() != grant.holder() => {
                Err(Refused::DuplicateToken { presented })
            }
            order => Ok(order),
        }
    }
}

#[cfg(test)]
mod tests;
