use http::StatusCode;

use super::Refusal;

/// Why a write is not known to have been made under the fence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The service says that it has done as told, and not that its store has compared the token:
    /// it may have written without a fence. A service that does not know the header ignores it.
    #[error("{status} without Fencing-Accepted for our token: the write was not fenced")]
    NotFenced {
        /// The status, a 2xx.
        status: StatusCode,
    },
    /// The service has not done as told.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no answer. Unless the connection was never made, whether the write was made is
    /// unknown.
    #[cfg(feature = "reqwest")]
    #[error("no answer")]
    NoAnswer(#[from] reqwest::Error),
}
