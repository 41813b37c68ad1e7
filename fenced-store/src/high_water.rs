use lock_core::{FencingToken, Issuer};

use crate::FenceError;

/// The high-water mark of a resource: the greatest token that was ever claimed for it.
///
/// It is old when it arrives: good for a look and for refusing early, never for accepting a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HighWater {
    token: FencingToken,
    issuer: Issuer,
    /// The digest of the holder that claimed it. Not public: holders are told apart by fingerprint.
    holder: String,
}

impl HighWater {
    /// From the columns `token`, `holder`, `issuer`.
    pub(crate) fn from_columns(row: (i64, String, String)) -> Result<Self, FenceError> {
        let (token, holder, issuer) = row;
        Ok(Self {
            token: FencingToken::try_from(token).map_err(undecodable)?,
            issuer: Issuer::new(issuer).map_err(undecodable)?,
            holder,
        })
    }

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

    #[cfg(any(feature = "mysql", feature = "sqlite"))]
    pub(crate) fn holder(&self) -> &str {
        &self.holder
    }
}

/// The tables hold something that this crate did not write.
pub(crate) fn undecodable(error: impl std::error::Error + Send + Sync + 'static) -> FenceError {
    let source = sqlx::Error::Decode(error.into());
    FenceError::Db { source }
}
