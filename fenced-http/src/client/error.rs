use super::{NotFenced, Refusal};

/// The reason why it is not certain that a write of [`Sender`](super::Sender) was made under the
/// fence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The service may have written without a fence.
    #[error(transparent)]
    NotFenced(#[from] NotFenced),
    /// The service has refused the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is no answer. It is unknown whether the write was made. It was not made if there never
    /// was a connection.
    #[error("no answer")]
    NoAnswer(#[from] reqwest::Error),
}
