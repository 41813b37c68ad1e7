use http::StatusCode;

/// The service says that the request succeeded, but not that its store has compared the token. So
/// the service may have written without a fence.
///
/// A service that does not know the header ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{status} without Fencing-Accepted for our token: the write was not fenced")]
pub struct NotFenced {
    pub(super) status: StatusCode,
}

impl NotFenced {
    /// The status, a 2xx.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }
}
