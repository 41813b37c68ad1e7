use std::time::Duration;

/// The step that a client takes after a [`Refusal`](super::Refusal).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Never send this token again: throw away the results that were computed under it, acquire the
    /// lock and read again.
    AcquireAgain,
    /// The grant was not claimed in the store: claim it, once, then send the request again. If the
    /// grant was claimed, as every lease of a gateway is, the store has lost the claim: acquire
    /// again.
    ClaimFirst,
    /// Nothing was written: send the same request again, with the same token.
    Retry {
        /// The pause before the next try, if the service has named one.
        after: Option<Duration>,
    },
    /// The write may or may not have been made: read first.
    ReadFirst,
    /// The same request would get the same answer: the request, the client or the service has a
    /// fault.
    GiveUp,
}
