use lock_core::{Issuer, LockManager};

use super::HandoverError;
use crate::admin::Reason;

/// The order to replace one lock service in front of a store by another, and why.
#[derive(Clone, Debug)]
pub struct Handover {
    pub(super) old: Old,
    pub(super) new: LockManager,
    pub(super) reason: Reason,
}

#[derive(Clone, Debug)]
pub(super) enum Old {
    There(LockManager),
    /// A service that cannot be asked anything any more.
    Lost(Issuer),
}

impl Handover {
    /// From one lock service to another, both of which answer.
    ///
    /// # Errors
    /// [`HandoverError::SameIssuer`] if the store could not tell them apart: name one of them with
    /// [`LockManagerBuilder::issuer`](lock_core::LockManagerBuilder::issuer), and make all its
    /// clients do the same.
    pub fn new(
        old: &LockManager,
        new: &LockManager,
        reason: Reason,
    ) -> Result<Self, HandoverError> {
        Self::of(Old::There(old.clone()), new, reason)
    }

    /// From a lock service that is gone for good, leaving nothing but its name.
    ///
    /// The tokens that it has issued are then assumed to be below the clock (see
    /// [`InitialToken::Clock`](lock_core::InitialToken::Clock)). **If it comes back**, it grants
    /// leases that the store does not accept; do not hand over to it without having retired it.
    ///
    /// # Errors
    /// [`HandoverError::SameIssuer`].
    pub fn from_lost(
        old: Issuer,
        new: &LockManager,
        reason: Reason,
    ) -> Result<Self, HandoverError> {
        Self::of(Old::Lost(old), new, reason)
    }

    fn of(old: Old, new: &LockManager, reason: Reason) -> Result<Self, HandoverError> {
        let order = Self {
            old,
            new: new.clone(),
            reason,
        };
        if order.from() == order.to() {
            return Err(HandoverError::SameIssuer);
        }
        Ok(order)
    }

    /// The issuer whose tokens the store has accepted so far.
    #[must_use]
    pub fn from(&self) -> &Issuer {
        match &self.old {
            Old::There(locks) => locks.issuer(),
            Old::Lost(issuer) => issuer,
        }
    }

    /// The issuer whose tokens it accepts from then on.
    #[must_use]
    pub fn to(&self) -> &Issuer {
        self.new.issuer()
    }
}
