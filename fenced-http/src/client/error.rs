use super::{NotFenced, Refusal};

/// Why a write that [`Sender`](super::Sender) has sent is not known to have been made under the
/// fence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The service may have written without a fence.
    #[error(transparent)]
    NotFenced(#[from] NotFenced),
    /// The service has not done the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no answer. It is unknown whether the write was made, unless there never was a
    /// connection.
    #[error("no answer")]
    NoAnswer(#[from] reqwest::Error),
}
