//! The header `Fencing-Accepted`. Only a receipt of the store sets it.

use http::{HeaderMap, Response};
use lock_core::FencingToken;

use crate::{FENCING_ACCEPTED, caches};

/// The mark that a receipt leaves on a response, beside the header. The layer removes the header
/// from a response without this mark.
///
/// Only receipts of the store may make this mark. It promises nothing to other callers. A caller
/// that makes the mark states that a store has compared the token in the transaction of the write.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Accepted(FencingToken);

impl Accepted {
    /// Makes the mark. Its only caller is `fenced_store::Receipt`.
    #[must_use]
    pub const fn by_receipt(token: FencingToken) -> Self {
        Self(token)
    }

    /// Sets the header. The caller also has to put this mark into the extensions of the response.
    pub fn set(self, headers: &mut HeaderMap) {
        headers.insert(&FENCING_ACCEPTED, self.0.get().into());
        caches::keep_out(headers);
    }
}

/// Sets the headers if there was a receipt. Otherwise removes the acceptance.
pub(crate) fn verify<B>(response: &mut Response<B>) {
    match response.extensions().get::<Accepted>().copied() {
        Some(accepted) => accepted.set(response.headers_mut()),
        None => {
            response.headers_mut().remove(&FENCING_ACCEPTED);
        }
    }
}
