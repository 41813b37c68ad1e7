//! Operations for administrators only: replacing the lock service, setting a mark by hand.
//!
//! **Nothing here is for an application.** The store rule says that a mark never falls and that
//! only tokens of one lock service count. These are the two ways around it, for the day when a lock
//! service is replaced ([`Admin::hand_over`]) or a mark was poisoned. Each writes who did what,
//! when and why into the table `admin_log`, in the same transaction as the change itself.
//!
//! In Postgres they are SQL functions, `fenced.seal_issuer`, `fenced.seal_mark` and
//! `fenced.reset_high_water`, that only their owner may call until somebody grants more rights: see
//! `docs/operations.md`. SQLite, MySQL and MariaDB cannot keep an application's user from its own
//! tables.

#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) mod by_statements;
pub(crate) mod dialect;
mod error;
mod handover;
mod reason;
mod repeated;
mod reset;
mod seal;

use lock_core::{FencingToken, Issuer, ResourceName};

use self::{dialect::Administer, repeated::repeated};
pub use self::{
    error::AdminError,
    handover::{
        HandedOver, Handover, HandoverError, HandoverPhase, HandoverPlan, HandoverStep, Lifted,
        PROBE,
    },
    reason::{InvalidReason, Reason},
    reset::Reset,
    seal::Seal,
};
use crate::{Dialect, FenceError, FencedStore, uninterrupted::uninterrupted};

/// The administrator's view of a store: [`FencedStore::admin`].
#[derive(Debug)]
pub struct Admin<'a, DB: Dialect> {
    store: &'a FencedStore<DB>,
}

/// How many marks to look up at a time.
const BATCH: i64 = 500;

impl<DB: Dialect> FencedStore<DB> {
    /// The operations for administrators. Read [`admin`](crate::admin) before you use them.
    #[must_use]
    pub const fn admin(&self) -> Admin<'_, DB> {
        Admin { store: self }
    }
}

impl<DB: Dialect> Admin<'_, DB> {
    /// The lock service whose tokens the store accepts; `None` before the first claim.
    ///
    /// # Errors
    /// If the database cannot be queried.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn issuer(&self) -> Result<Option<Issuer>, AdminError> {
        Ok(DB::Admin::issuer(self.store.pool()).await?)
    }

    /// Hands the store over from one lock service to another; returns how many marks this call
    /// sealed.
    ///
    /// First the single issuer row is changed, after the claims that are in progress: from then on
    /// no grant of the old service can be claimed. Then each mark is sealed in a transaction of its
    /// own, after the transactions that have entered it: its holder is shut out, the mark is raised
    /// to [`Seal`]'s `above` if it is lower, and it belongs to the new service. Until its mark is
    /// sealed a holder may go on writing, and the new service's grants of that resource are
    /// refused. `progress` is called with each resource that was sealed, and the number of them so
    /// far.
    ///
    /// It can be interrupted, and called again with the same order, as often as necessary: sealed
    /// marks stay sealed. **Finish one seal before the next.** A seal that was not finished leaves
    /// marks of its old service, and a later seal, from the new service to a third, does not cover
    /// them. The later seal reports them, and an order from the old service to the latest one then
    /// seals them.
    ///
    /// # Errors
    /// [`AdminError::OtherIssuer`] if the store accepts tokens of neither, with nothing changed; or
    /// if another seal meanwhile continues from here. [`AdminError::Implausible`], with nothing
    /// changed, if `above` is beyond the [plausibility](FencedStore::plausibility) of the store.
    /// [`AdminError::Unfinished`] if open transactions keep some marks from being sealed; the
    /// others are sealed. [`AdminError::OthersLeft`] if this seal is done, but an earlier one is
    /// not. [`FenceError::Busy`], with nothing changed, if the claims in progress do not end within
    /// the store's lock timeout; later claims do not count, they wait. Otherwise if the database
    /// fails; marks that were sealed stay sealed.
    ///
    /// # Cancel safety
    /// The mark that is being sealed is sealed in the background. Call again.
    pub async fn seal(
        &self,
        order: &Seal,
        mut progress: impl FnMut(&ResourceName, u64) + Send,
    ) -> Result<u64, AdminError> {
        self.check(order.above())?;
        self.change_issuer(order).await?;
        let (mut sealed, mut held_up) = (0, None::<FenceError>);
        let mut after = String::new();
        loop {
            let marks = DB::Admin::marks_of(self.store.pool(), order.from(), &after, BATCH).await?;
            let Some(last) = marks.last() else {
                break;
            };
            after = last.to_string();
            for resource in marks {
                match self.seal_mark(order, &resource).await {
                    Ok(()) => {
                        sealed += 1;
                        progress(&resource, sealed);
                    }
                    Err(AdminError::Store(error)) if is_held_up(&error) => held_up = Some(error),
                    Err(error) => return Err(error),
                }
            }
        }
        if let Some(source) = held_up {
            return Err(AdminError::Unfinished { sealed, source });
        }
        match DB::Admin::marks_left(self.store.pool(), order.to()).await? {
            None => Ok(sealed),
            Some((issuer, marks)) => Err(AdminError::OthersLeft {
                sealed,
                issuer,
                marks,
            }),
        }
    }

    /// Whether any lock service can ever exceed a mark that is set there.
    fn check(&self, to: FencingToken) -> Result<(), AdminError> {
        if self.store.admits(to) {
            return Ok(());
        }
        Err(AdminError::Implausible { to })
    }

    async fn change_issuer(&self, order: &Seal) -> Result<(), AdminError> {
        let (store, seal) = (self.store.clone(), order.clone());
        let lock_timeout = DB::lock_timeout(store.tx_options());
        uninterrupted(async move {
            repeated(|| DB::Admin::change_issuer(store.pool(), lock_timeout, &seal)).await
        })
        .await
    }

    async fn seal_mark(&self, order: &Seal, resource: &ResourceName) -> Result<(), AdminError> {
        let (store, seal, resource) = (self.store.clone(), order.clone(), resource.clone());
        let lock_timeout = DB::lock_timeout(store.tx_options());
        uninterrupted(async move {
            repeated(|| DB::Admin::seal_mark(store.pool(), lock_timeout, &seal, &resource)).await
        })
        .await
    }

    /// Sets a mark by hand, and shuts out the holder that it shows: the next write needs a new
    /// claim.
    ///
    /// The mark is only changed if it is where [`Reset`] expects it. Waits until the transactions
    /// that have entered are over.
    ///
    /// # Errors
    /// [`AdminError::NotAsExpected`] with nothing changed. [`AdminError::Implausible`] likewise, if
    /// the mark is to be raised beyond the [plausibility](FencedStore::plausibility) of the store.
    /// Otherwise if the database fails.
    ///
    /// # Cancel safety
    /// It is finished in the background. Read the mark to know.
    pub async fn reset_high_water(&self, order: &Reset) -> Result<(), AdminError> {
        if order.to() > order.expected() {
            self.check(order.to())?;
        }
        let (store, reset) = (self.store.clone(), order.clone());
        let lock_timeout = DB::lock_timeout(store.tx_options());
        uninterrupted(async move {
            repeated(|| DB::Admin::reset(store.pool(), lock_timeout, &reset)).await
        })
        .await
    }
}

/// Whether only this mark cannot be sealed now.
const fn is_held_up(error: &FenceError) -> bool {
    error.is_retryable() || matches!(error, FenceError::Terminated { .. })
}
