use lock_core::{Issuer, LockManager};

use super::HandoverError;
use crate::admin::Reason;

/// The order to replace one lock service in front of a store by another, and why.
#[derive(Clone, Debug)]
pub struct Handover {
    pub(super) from: Issuer,
    pub(super) new: LockManager,
    pub(super) reason: Reason,
}

impl Handover {
    /// From the lock service of this name, which is never asked for anything, to another one.
    ///
    /// # Errors
    /// [`HandoverError::SameIssuer`] if the store could not tell them apart: name the new one with
    /// [`LockManagerBuilder::issuer`](lock_core::LockManagerBuilder::issuer), and make all its
    /// clients do the same.
    pub fn new(from: Issuer, new: &LockManager, reason: Reason) -> Result<Self, HandoverError> {
        if from == *new.issuer() {
            return Err(HandoverError::SameIssuer);
        }
        let new = new.clone();
        Ok(Self { from, new, reason })
    }

    /// The issuer whose tokens the store has accepted so far.
    #[must_use]
    pub const fn from(&self) -> &Issuer {
        &self.from
    }

    /// The issuer whose tokens it accepts from then on.
    #[must_use]
    pub fn to(&self) -> &Issuer {
        self.new.issuer()
    }
}
