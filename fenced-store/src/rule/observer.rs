//! Adoption in steps: an observer counts the refusals of a store before the store refuses anything.

use lock_core::Sequencer;
use tracing::warn;

use crate::{
    Dialect, FenceError, FencedStore, NotReady, Presented, counted,
    dialect::Installation,
    storage::OpenTransaction,
    transaction::{begin_request::BeginRequest, leaked::to_read, uninterrupted::uninterrupted},
};

/// Counts the grants that a store would refuse, and refuses none. It is meant for a service that
/// runs already.
///
/// Your own transactions stay as they are. Call [`claim`](Self::claim) when a lock was granted, and
/// [`look`](Self::look) right before you commit. After a week without a refusal, replace the look
/// by [`begin`](FencedStore::begin), which then refuses only stale holders.
///
/// NOT a fence: a stale write that the observer counts is stored, and there is no
/// [`Receipt`](crate::Receipt). A write that becomes stale between the look and your commit is not
/// counted.
///
/// # Examples
/// ```no_run
/// # #[cfg(feature = "postgres")]
/// # async fn f(
/// #     store: fenced_store::PgFencedStore,
/// #     locks: lock_core::LockManager,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// let observer = store.observe().await?;
///
/// let guard = locks.acquire("account:42").await?;
/// observer.claim(guard.sequencer()).await;
/// let mut tx = store.pool().begin().await?;
/// sqlx::query("UPDATE accounts SET balance = balance + 10 WHERE id = 42")
///     .execute(&mut *tx)
///     .await?;
/// observer.look(guard.sequencer()).await;
/// tx.commit().await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Observer<DB: Dialect> {
    store: FencedStore<DB>,
}

/// The answer that a store would have given.
#[derive(Debug)]
#[must_use = "a refusal is counted and logged in any case"]
#[non_exhaustive]
pub enum Observed {
    /// The store would have accepted the grant.
    Accepted,
    /// The store would have refused the grant, for this reason.
    Refused(FenceError),
    /// The store could not answer.
    Unknown(FenceError),
}

impl Observed {
    /// Whether the grant would have been refused.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

impl<DB: Dialect> FencedStore<DB> {
    /// Begins to observe. This needs our tables: [`migrate`](Self::migrate) first.
    ///
    /// # Errors
    /// [`NotReady::Protected`] if a table of the database is [protected](Self::protect), because
    /// the database then refuses unfenced writes already. Otherwise errors of the database.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn observe(&self) -> Result<Observer<DB>, FenceError> {
        let mut connection = to_read(self.pool()).await?;
        let guards = DB::look(&mut connection, <DB as Installation>::GUARDED, &[]).await?;
        match guards.first() {
            None => Ok(Observer {
                store: self.clone(),
            }),
            Some(row) => Err(NotReady::Protected {
                table: DB::text(row, 0)?,
            }
            .into()),
        }
    }
}

impl<DB: Dialect> Observer<DB> {
    /// Raises the mark, as [`FencedStore::claim`] does, because later looks compare with the mark.
    /// A claim that would be refused, or that fails, changes nothing.
    ///
    /// # Cancel safety
    /// The claim is finished in the background. Claim again to find out its result.
    pub async fn claim(&self, sequencer: &Sequencer) -> Observed {
        observed(
            "claim",
            sequencer,
            self.store.claim_uncounted(sequencer).await,
        )
    }

    /// Looks whether a write under this grant would be accepted now.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    pub async fn look(&self, sequencer: &Sequencer) -> Observed {
        let (store, grant) = (self.store.clone(), sequencer.clone());
        let look = async move {
            let fence = Presented::from(&grant).fence();
            let request = BeginRequest::of(fence, Vec::new(), store.tasks())?;
            let options = store.tx_options();
            let tx = DB::begin(&store.access, options, &request).await?;
            tx.roll_back().await
        };
        observed(
            "write",
            sequencer,
            uninterrupted(self.store.tasks(), look).await,
        )
    }
}

fn observed(what: &'static str, sequencer: &Sequencer, answer: Result<(), FenceError>) -> Observed {
    let observed = match answer {
        Ok(()) => Observed::Accepted,
        Err(error) if counted::is_refusal(&error) => Observed::Refused(error),
        Err(error) => Observed::Unknown(error),
    };
    counted::observed(&observed);
    if let Observed::Refused(error) = &observed {
        let resource = sequencer.resource();
        warn!(%resource, %error, "a {what} would have been refused: the store only observes");
    }
    observed
}
