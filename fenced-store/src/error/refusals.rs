use lock_core::{FencingToken, Issuer, ResourceName};

use super::FenceError;

/// Constructors of refusals, for code that answers like a store: a store of another kind, or a
/// double in a test. Use them in place of the variants, because the variants may get further
/// fields.
impl FenceError {
    /// A [`Stale`](Self::Stale): a newer grant, with the token `high_water`, has been claimed.
    #[must_use]
    pub const fn stale(
        resource: ResourceName,
        presented: FencingToken,
        high_water: FencingToken,
    ) -> Self {
        Self::Stale {
            resource,
            presented,
            high_water,
            forgotten: false,
        }
    }

    /// A [`Stale`](Self::Stale): the mark of the resource was forgotten, and the token is not above
    /// the floor of the store.
    #[must_use]
    pub const fn forgotten(
        resource: ResourceName,
        presented: FencingToken,
        floor: FencingToken,
    ) -> Self {
        Self::Stale {
            resource,
            presented,
            high_water: floor,
            forgotten: true,
        }
    }

    /// A [`DuplicateToken`](Self::DuplicateToken): another holder claimed this token.
    #[must_use]
    pub const fn duplicate_token(resource: ResourceName, presented: FencingToken) -> Self {
        Self::DuplicateToken {
            resource,
            presented,
        }
    }

    /// A [`NotClaimed`](Self::NotClaimed): the token is above the mark.
    #[must_use]
    pub const fn not_claimed(resource: ResourceName, presented: FencingToken) -> Self {
        Self::NotClaimed {
            resource,
            presented,
        }
    }

    /// A [`MarkLost`](Self::MarkLost): the token was claimed, but the store has forgotten it.
    #[must_use]
    pub const fn mark_lost(resource: ResourceName, presented: FencingToken) -> Self {
        Self::MarkLost {
            resource,
            presented,
        }
    }

    /// A [`WrongIssuer`](Self::WrongIssuer): the store accepts tokens of `current`.
    #[must_use]
    pub const fn wrong_issuer(resource: ResourceName, presented: Issuer, current: Issuer) -> Self {
        Self::WrongIssuer {
            resource,
            presented,
            current,
        }
    }

    /// An [`Implausible`](Self::Implausible): no lock service can have issued this token.
    #[must_use]
    pub const fn implausible(resource: ResourceName, presented: FencingToken) -> Self {
        Self::Implausible {
            resource,
            presented,
        }
    }
}
