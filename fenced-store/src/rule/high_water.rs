use lock_core::{FencingToken, Issuer};

/// The high-water mark of a resource: the greatest token that was ever claimed for it.
///
/// It is stale when it arrives: good for a look and for refusing early, never for accepting a
/// write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HighWater {
    pub(crate) token: FencingToken,
    pub(crate) issuer: Issuer,
}

impl HighWater {
    /// The token. Lower ones are refused.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// The lock service that issued it.
    #[must_use]
    pub const fn issuer(&self) -> &Issuer {
        &self.issuer
    }
}
