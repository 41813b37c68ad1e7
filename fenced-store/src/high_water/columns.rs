use lock_core::{FencingToken, Issuer};

use super::HighWater;
use crate::FenceError;

impl HighWater {
    /// Makes a mark from the columns `token`, `issuer`.
    pub(crate) fn from_columns((token, issuer): (i64, String)) -> Result<Self, FenceError> {
        Ok(Self {
            token: FencingToken::try_from(token).map_err(undecodable)?,
            issuer: Issuer::new(issuer).map_err(undecodable)?,
        })
    }
}

/// The error when the tables contain something that this crate did not write.
pub(crate) fn undecodable(error: impl std::error::Error + Send + Sync + 'static) -> FenceError {
    let source = sqlx::Error::Decode(error.into());
    FenceError::Db { source }
}
