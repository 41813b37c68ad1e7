use lock_core::{FencingToken, Issuer};

use super::HighWater;
use crate::FenceError;

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
}

/// The tables hold something that this crate did not write.
pub(crate) fn undecodable(error: impl std::error::Error + Send + Sync + 'static) -> FenceError {
    let source = sqlx::Error::Decode(error.into());
    FenceError::Db { source }
}
