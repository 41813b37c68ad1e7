use http::{HeaderValue, Response};
use lock_core::FencingToken;

use super::FENCING_HIGH_WATER;

/// Whether a refusal as stale tells the client the high-water mark, in
/// [`FENCING_HIGH_WATER`].
///
/// The mark helps people who look for a fault. But where tokens are not signed it turns a client
/// with a bug into a forger: it only has to send the next number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disclose {
    /// Never.
    Never,
    /// To a client whose own token was signed. The default.
    #[default]
    WhenSigned,
    /// Always: for demonstrations and trusted networks.
    Always,
}

impl Disclose {
    pub(super) const fn to_client(self, signed: bool) -> ToClient {
        match self {
            Self::Never => false,
            Self::WhenSigned => signed,
            Self::Always => true,
        }
    }
}

/// What the policy says about one request.
pub(super) type ToClient = bool;

/// The mark that a response could disclose, on its way from the handler to the layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct HighWaterMark(pub(super) FencingToken);

/// Moves the mark into the header, if the policy lets the client see it.
pub(super) fn apply<B>(response: &mut Response<B>, to_client: ToClient) {
    if let Some(HighWaterMark(mark)) = response.extensions_mut().remove()
        && to_client
    {
        response
            .headers_mut()
            .insert(&FENCING_HIGH_WATER, HeaderValue::from(mark.get()));
    }
}
