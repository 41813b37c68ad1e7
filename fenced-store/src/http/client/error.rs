use super::NotFenced;
#[cfg(feature = "reqwest")]
use super::Refusal;

/// Why a write that [`Sender`](super::Sender) has sent is not known to have been made under the
/// fence.
#[cfg(feature = "reqwest")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The service may have written without a fence.
    #[error(transparent)]
    NotFenced(#[from] NotFenced),
    /// The service has not done as told.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no answer. Unless the connection was never made, whether the write was made is
    /// unknown.
    #[error("no answer")]
    NoAnswer(#[from] reqwest::Error),
}

/// Why [`FencedWrite`](super::FencedWrite) has no response to hand on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<E> {
    /// The service may have written without a fence.
    #[error(transparent)]
    NotFenced(NotFenced),
    /// The inner service has none, for this reason.
    #[error(transparent)]
    Inner(E),
}
