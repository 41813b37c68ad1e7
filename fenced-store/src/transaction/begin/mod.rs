//! A transaction that is being prepared: [`Begin`] collects the grants that are to fence it.
//! `execute.rs` sends a single statement instead, and `transact.rs` repeats the whole transaction
//! after a conflict. `presented.rs` is a grant in any of the forms that a caller may have.

mod execute;
mod presented;
mod transact;

use std::{fmt, future::IntoFuture, iter};

use lock_core::backend::BoxFuture;

pub(crate) use self::transact::RETRIES;
pub use self::{execute::Executed, presented::Presented};
use crate::{
    FenceError, FencedStore, FencedTx, Receipt, Storage, counted,
    transaction::begin_request::BeginRequest,
};

/// A fenced transaction that is being prepared: `.await` it for a [`FencedTx`].
///
/// It begins only if the mark of every named resource shows the grant that is presented for it.
/// Awaiting it never claims. The resources are checked in the order of their names, whatever the
/// order of the calls, so that two transactions and the claims between them do not wait in a
/// circle.
///
/// # Errors
/// [`FenceError::RepeatedResource`], before anything is sent. Fenced: [`FenceError::Stale`],
/// [`FenceError::DuplicateToken`], [`FenceError::NotClaimed`], [`FenceError::WrongIssuer`], and
/// with a guard the errors of [`FencedGuard::begin`](crate::FencedGuard::begin). If any grant is
/// refused, the transaction does not begin, and [`FenceError::resource`] is the resource of that
/// grant. A refusal changes nothing.
///
/// # Cancel safety
/// Cancel safe: a transaction that was begun meanwhile is rolled back.
///
/// # Examples
/// ```
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use fenced_store::{FencedLocks, SqliteFencedStore};
///
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("accounts.db");
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
/// # let options = SqliteFencedStore::recommended(options.create_if_missing(true));
/// # let store = SqliteFencedStore::new(sqlx::SqlitePool::connect_with(options).await?);
/// # store.migrate().await?;
/// # let locks = palisade::connect("memory:").await?;
/// let accounts = FencedLocks::new(locks, store);
/// let from = accounts.acquire("account:1").await?;
/// let to = accounts.acquire("account:2").await?;
///
/// let tx = from.begin().and(&to).await?; // write to both accounts through it
/// let receipt = tx.commit().await?;
/// assert_eq!(receipt.resources().count(), 2);
/// # Ok(()) }
/// ```
#[must_use = "a transaction does not begin until it is awaited"]
pub struct Begin<'a, DB: Storage> {
    store: &'a FencedStore<DB>,
    first: Presented<'a>,
    others: Vec<Presented<'a>>,
}

impl<DB: Storage> FencedStore<DB> {
    /// Prepares a transaction that begins if the mark shows this grant. The call never claims.
    ///
    /// For several resources use [`and`](Begin::and): `store.begin(&one).and(&other).await?`.
    ///
    /// # Errors
    /// Awaiting it fails as [`Begin`] does.
    pub fn begin<'a>(&'a self, grant: impl Into<Presented<'a>>) -> Begin<'a, DB> {
        Begin {
            store: self,
            first: grant.into(),
            others: Vec::new(),
        }
    }
}

impl<'a, DB: Storage> Begin<'a, DB> {
    /// Adds another grant: the transaction begins only if all grants are accepted.
    ///
    /// Name each resource only once. Every grant is checked against the mark of its own resource;
    /// tokens of different resources are never compared.
    pub fn and(mut self, another: impl Into<Presented<'a>>) -> Self {
        self.others.push(another.into());
        self
    }

    async fn run(self) -> Result<FencedTx<DB>, FenceError> {
        let request = self.request()?;
        let (pool, options) = (&self.store.access, self.store.tx_options());
        let tx = self.answered(DB::begin(pool, options, &request).await)?;
        let sequencers = self.presented().map(Presented::sequencer);
        Ok(FencedTx::new(tx, sequencers.cloned().collect()))
    }

    /// The request to the store. Fails if it is already known that the store would refuse a grant.
    fn request(&self) -> Result<BeginRequest, FenceError> {
        for presented in self.presented() {
            presented.check()?;
        }
        let others = self.others.iter().map(Presented::fence).collect();
        BeginRequest::of(self.first.fence(), others, self.store.tasks())
    }

    /// The grants in the order in which they were named.
    fn presented(&self) -> impl Iterator<Item = &Presented<'a>> {
        iter::once(&self.first).chain(&self.others)
    }

    /// Counts a refusal, and lets the guard remember it.
    fn answered<T>(&self, answer: Result<T, FenceError>) -> Result<T, FenceError> {
        counted::refusal(answer).map_err(|error| self.refused(error))
    }

    /// If the refused grant belongs to a guard, the guard remembers the refusal.
    fn refused(&self, error: FenceError) -> FenceError {
        let is_its =
            |presented: &&Presented<'_>| error.resource() == Some(presented.sequencer().resource());
        match self.presented().find(is_its) {
            Some(presented) => presented.refused(error),
            None => error,
        }
    }

    /// The receipt of a commit. It must not be handed out before the commit was answered.
    fn receipt(&self) -> Receipt {
        Receipt::of_commit(self.presented().map(Presented::sequencer))
    }
}

impl<'a, DB: Storage> IntoFuture for Begin<'a, DB> {
    type Output = Result<FencedTx<DB>, FenceError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<DB: Storage> fmt::Debug for Begin<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Begin")
            .field("database", &DB::KIND)
            .field("first", &self.first)
            .field("others", &self.others)
            .finish_non_exhaustive()
    }
}
