use lock_core::FencingToken;

use super::{Admin, AdminError, Reason, carry_out::carry_out, order::Order};
use crate::{Dialect, rule::marks, transaction::leaked::to_read};

/// The order to lower the floor of a store that has forgotten marks: the remedy for a floor that
/// was lifted by tokens of another scale.
///
/// **This lets stale holders back in.** Without a mark of its resource, each client that ever got a
/// token above the new floor may claim it and write. Lower the floor as little as possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerFloor {
    pub(crate) expected: FencingToken,
    /// `None` is no floor at all.
    pub(crate) to: Option<FencingToken>,
    pub(crate) reason: Reason,
}

impl LowerFloor {
    /// From the floor that has to be there now to a lower one; `None` is no floor at all.
    ///
    /// # Errors
    /// [`AdminError::NotALowering`] if `to` is not below `expected`.
    pub fn new(
        expected: FencingToken,
        to: Option<FencingToken>,
        reason: Reason,
    ) -> Result<Self, AdminError> {
        match to {
            Some(to) if to >= expected => Err(AdminError::NotALowering { expected, to }),
            _ => Ok(Self {
                expected,
                to,
                reason,
            }),
        }
    }

    /// The floor that has to be there now.
    #[must_use]
    pub const fn expected(&self) -> FencingToken {
        self.expected
    }

    /// The new floor; `None` is no floor at all.
    #[must_use]
    pub const fn to(&self) -> Option<FencingToken> {
        self.to
    }

    /// The expected and the new floor as numbers, where 0 is no floor.
    pub(crate) fn numbers(&self) -> (i64, i64) {
        (self.expected.into(), self.to.map_or(0, i64::from))
    }
}

impl<DB: Dialect> Admin<'_, DB> {
    /// The floor of the store: a resource without a mark takes only tokens above it. `None` if no
    /// mark was ever [forgotten](crate::FencedStore::forget_marks).
    ///
    /// # Errors
    /// If the database cannot be queried.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn floor(&self) -> Result<Option<FencingToken>, AdminError> {
        Ok(marks::floor::<DB>(&mut *to_read(self.store.pool()).await?).await?)
    }

    /// Lowers the floor of the store.
    ///
    /// # Errors
    /// [`AdminError::FloorNotAsExpected`] if the floor is another one than expected: nothing is
    /// changed. Otherwise errors of the database.
    ///
    /// # Cancel safety
    /// The order is finished in the background. Read the floor to find out its result.
    pub async fn lower_floor(&self, order: &LowerFloor) -> Result<(), AdminError> {
        let order = Order::LowerFloor(order.clone());
        carry_out(self.store, order).await.map(drop)
    }
}
