use lock_core::{FencingToken, Issuer};

use super::{AdminError, Reason};

/// The order to hand a store over from one lock service to another, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    from: Issuer,
    to: Issuer,
    above: FencingToken,
    reason: Reason,
}

impl Seal {
    /// `above` is a number such that no token of the old service is above it, and every token that
    /// the new one issues is: the store accepts only tokens above it. Give the new service its
    /// floor *before* the store is sealed, and choose the greatest mark or more.
    /// [`Admin::hand_over`](super::Admin::hand_over) does both.
    ///
    /// **A number that is too great** locks every resource until the new service has counted up to
    /// it. Counters that go by the clock are at `unix time * 100 000`.
    ///
    /// # Errors
    /// [`AdminError::SameIssuer`] if there is nothing to hand over.
    pub fn new(
        from: Issuer,
        to: Issuer,
        above: FencingToken,
        reason: Reason,
    ) -> Result<Self, AdminError> {
        if from == to {
            return Err(AdminError::SameIssuer);
        }
        Ok(Self {
            from,
            to,
            above,
            reason,
        })
    }

    /// The issuer whose tokens were accepted so far.
    #[must_use]
    pub const fn from(&self) -> &Issuer {
        &self.from
    }

    /// The issuer whose tokens are accepted from now on.
    #[must_use]
    pub const fn to(&self) -> &Issuer {
        &self.to
    }

    /// The number that new tokens have to exceed.
    #[must_use]
    pub const fn above(&self) -> FencingToken {
        self.above
    }

    /// The reason.
    #[must_use]
    pub const fn reason(&self) -> &Reason {
        &self.reason
    }
}
