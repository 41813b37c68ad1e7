//! What only administrators do: another lock service takes over, a mark is set by hand.
//!
//! **Nothing here is for an application.** The store rule says that a mark never falls and that
//! tokens of one lock service alone count. These are the two ways around it, for the day when a
//! lock service is replaced ([`Admin::hand_over`]) or a mark was poisoned. Each writes who did
//! what, when and why into the table `administration`, in the same transaction as the change
//! itself.
//!
//! In Postgres they are SQL functions, `fenced.seal_issuer`, `fenced.seal_mark` and
//! `fenced.reset_high_water`, that only their owner may call until somebody grants more: see
//! `docs/operations.md`. SQLite, MySQL and MariaDB cannot keep an application's user from its own
//! tables.

#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) mod by_statements;
pub(crate) mod dialect;
mod error;
mod handover;
mod reason;
mod reset;
mod seal;

use lock_core::{FencingToken, Issuer, ResourceName};

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
use crate::{
    Dialect, FenceError, FencedStore, admin::dialect::Administer, uninterrupted::uninterrupted,
};

/// The administrator's view of a store: [`FencedStore::admin`].
#[derive(Debug)]
pub struct Admin<'a, DB: Dialect> {
    store: &'a FencedStore<DB>,
}

/// How many marks are looked up at a time.
const BATCH: i64 = 500;

impl<DB: Dialect> FencedStore<DB> {
    /// What only administrators do. See [`admin`](crate::admin) before you use it.
    #[must_use]
    pub const fn admin(&self) -> Admin<'_, DB> {
        Admin { store: self }
    }
}

impl<DB: Dialect> Admin<'_, DB> {
    /// The lock service whose tokens the store takes; `None` before the first claim.
    ///
    /// # Errors
    /// If the database cannot be asked.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn issuer(&self) -> Result<Option<Issuer>, AdminError> {
        Ok(DB::Admin::issuer(self.store.pool()).await?)
    }

    /// Hands the store over from one lock service to another; how many marks this call has sealed.
    ///
    /// First the one issuer row is changed, behind the claims that are under way: from then on no
    /// grant of the old service is claimed. Then each mark is sealed in a transaction of its own,
    /// behind the transactions that have entered it: its holder is shut out, it is raised to
    /// [`Seal`]'s `above` if it is lower, and belongs to the new service. Until its mark is sealed
    /// a holder may go on writing, and the new service's grants of that resource are refused.
    /// `progress` is told each resource that was sealed, and how many it were so far.
    ///
    /// It can be interrupted, and called again with the same order, as often as it takes: what is
    /// sealed stays as it is. **Finish one before the next**: marks that it has left, of the old
    /// service, are not those that a later seal of the new one is about. That one tells of them,
    /// and an order from the old service to the latest one seals them then.
    ///
    /// # Errors
    /// [`AdminError::OtherIssuer`] if the store takes tokens of neither, with nothing changed; or
    /// if another seal goes on from here meanwhile.
    /// [`AdminError::Implausible`], with nothing changed, if `above` is beyond the
    /// [plausibility](FencedStore::plausibility) of the store.
    /// [`AdminError::Unfinished`] if transactions that are open keep some marks from being sealed;
    /// the others are. [`AdminError::OthersLeft`] if it is done, and an earlier one is not.
    /// [`FenceError::Busy`], with nothing changed, if the claims that are under way are not over
    /// within the store's lock timeout; claims that come later do not count, they wait.
    /// Otherwise if the database cannot do it; what was sealed stays.
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

    /// Whether a lock service may ever come above a mark that is put there.
    fn check(&self, to: FencingToken) -> Result<(), AdminError> {
        if self.store.admits(to) {
            return Ok(());
        }
        Err(AdminError::Implausible { to })
    }

    async fn change_issuer(&self, order: &Seal) -> Result<(), AdminError> {
        let (store, seal) = (self.store.clone(), order.clone());
        let lock_timeout = DB::lock_timeout(store.tx_options());
        let change =
            async move { DB::Admin::change_issuer(store.pool(), lock_timeout, &seal).await };
        uninterrupted(change).await
    }

    async fn seal_mark(&self, order: &Seal, resource: &ResourceName) -> Result<(), AdminError> {
        let (store, seal, resource) = (self.store.clone(), order.clone(), resource.clone());
        let lock_timeout = DB::lock_timeout(store.tx_options());
        let seal =
            async move { DB::Admin::seal_mark(store.pool(), lock_timeout, &seal, &resource).await };
        uninterrupted(seal).await
    }

    /// Sets a mark by hand, and shuts out whoever it shows: the next write needs a new claim.
    ///
    /// The mark is only touched if it stands where [`Reset`] expects it. Waits until the
    /// transactions that have entered are over.
    ///
    /// # Errors
    /// [`AdminError::NotAsExpected`] with nothing changed. [`AdminError::Implausible`] likewise, if
    /// the mark is to be raised beyond the [plausibility](FencedStore::plausibility) of the store.
    /// Otherwise if the database cannot do it.
    ///
    /// # Cancel safety
    /// It is finished in the background. Look at the mark to know.
    pub async fn reset_high_water(&self, order: &Reset) -> Result<(), AdminError> {
        if order.to() > order.expected() {
            self.check(order.to())?;
        }
        let (store, reset) = (self.store.clone(), order.clone());
        let lock_timeout = DB::lock_timeout(store.tx_options());
        let reset = async move { DB::Admin::reset(store.pool(), lock_timeout, &reset).await };
        uninterrupted(reset).await
    }
}

/// Whether it is this mark alone that cannot be sealed now.
const fn is_held_up(error: &FenceError) -> bool {
    error.is_retryable() || matches!(error, FenceError::Terminated { .. })
}
