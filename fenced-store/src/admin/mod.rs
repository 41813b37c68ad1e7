//! Operations for administrators only: to replace the lock service, and to set a mark by hand.
//!
//! **Nothing here is for an application.** The store rule says that a mark never falls and that
//! only tokens of one lock service count. This module has the two exceptions, for the day when a
//! lock service is replaced ([`Admin::hand_over`]) or a mark was poisoned
//! ([`Admin::reset_high_water`]). Each operation writes the user, the action, the time and the
//! reason into the table `admin_log`, in the same transaction as the change itself.
//!
//! In Postgres the operations are SQL functions: `fenced.seal_issuer`, `fenced.seal_mark` and
//! `fenced.reset_high_water`. Only the owner of the functions may call them, unless the owner
//! grants more rights: see `docs/operations/rights.md`. SQLite, MySQL and MariaDB cannot protect
//! these tables from the user of the application.

mod carry_out;
mod error;
mod floor;
mod handover;
pub(crate) mod order;
#[cfg(any(feature = "mysql", feature = "sqlite"))]
mod order_statements;
mod reason;
mod reset;

use lock_core::{FencingToken, Issuer};

use self::{carry_out::carry_out, order::Order};
pub use self::{
    error::AdminError,
    floor::LowerFloor,
    handover::{
        HandedOver, Handover, HandoverError, HandoverPhase, HandoverPlan, HandoverStep, PROBE,
    },
    reason::{InvalidReason, Reason},
    reset::Reset,
};
use crate::{Dialect, FencedStore, rule::marks, transaction::leaked::to_read};

/// The administrator's view of a store: [`FencedStore::admin`].
#[derive(Debug)]
pub struct Admin<'a, DB: Dialect> {
    store: &'a FencedStore<DB>,
}

/// The number of marks that one query reads.
const BATCH: usize = 500;

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
        Ok(marks::issuer::<DB>(&mut *to_read(self.store.pool()).await?).await?)
    }

    /// Fails if no lock service can ever exceed a mark with this token.
    fn check(&self, to: FencingToken) -> Result<(), AdminError> {
        if self.store.admits(to) {
            return Ok(());
        }
        Err(AdminError::Implausible { to })
    }

    /// Sets a mark by hand, and shuts out the holder that the mark shows. The next write needs a
    /// new claim.
    ///
    /// The mark is only changed if it is where [`Reset`] expects it. The call waits until the open
    /// transactions of the resource are over.
    ///
    /// # Errors
    /// [`AdminError::NotAsExpected`], and [`AdminError::Implausible`] if the mark would be raised
    /// beyond the [plausibility](FencedStore::plausibility) of the store. Both change nothing.
    /// Otherwise errors of the database.
    ///
    /// # Cancel safety
    /// The order is finished in the background. Read the mark to find out its result.
    pub async fn reset_high_water(&self, order: &Reset) -> Result<(), AdminError> {
        if order.to() > order.expected() {
            self.check(order.to())?;
        }
        let order = Order::Reset(order.clone());
        carry_out(self.store, order).await.map(drop)
    }
}
