use lock_core::{FencingToken, Issuer};

/// The high-water mark of a resource: the greatest token that was ever claimed for it.
///
/// This copy may be out of date when it arrives. Use it to show the mark or to refuse early, and
/// never to accept a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HighWater {
    pub(crate) token: FencingToken,
    pub(crate) issuer: Issuer,
}

impl HighWater {
    /// The token. Lower tokens are refused.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// The lock service that issued the token.
    #[must_use]
    pub const fn issuer(&self) -> &Issuer {
        &self.issuer
    }
}
