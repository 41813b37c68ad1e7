//! `Fencing-Accepted`: set by a receipt of the store, and by nothing else.

use http::{HeaderMap, Response};
use lock_core::FencingToken;

use crate::{FENCING_ACCEPTED, caches};

/// The mark that a receipt leaves on a response, beside the header. The layer takes the header off
/// where this mark is missing.
///
/// It is for the store's receipts alone, and promises nothing to other callers. A caller that makes
/// one says that a store has compared the token in the transaction of the write.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Accepted(FencingToken);

impl Accepted {
    /// Has one caller, `fenced_store::Receipt`.
    #[must_use]
    pub const fn by_receipt(token: FencingToken) -> Self {
        Self(token)
    }

    /// Sets the header. The value itself belongs among the extensions of the response.
    pub fn set(self, headers: &mut HeaderMap) {
        headers.insert(&FENCING_ACCEPTED, self.0.get().into());
        caches::keep_out(headers);
    }
}

/// Sets the headers as the receipt said, or takes the acceptance off if there was none.
pub(crate) fn verify<B>(response: &mut Response<B>) {
    match response.extensions().get::<Accepted>().copied() {
        Some(accepted) => accepted.set(response.headers_mut()),
        None => {
            response.headers_mut().remove(&FENCING_ACCEPTED);
        }
    }
}
