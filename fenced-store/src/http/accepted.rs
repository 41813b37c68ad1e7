//! `Fencing-Accepted`: set by a receipt, and by nothing else.

use http::{HeaderMap, Response};
use lock_core::FencingToken;

use super::{FENCING_ACCEPTED, caches};
use crate::Receipt;

/// What a receipt leaves beside the header. Only this crate can make one, so it cannot be forged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted(pub(super) FencingToken);

impl Accepted {
    pub(super) fn set(self, headers: &mut HeaderMap) {
        headers.insert(&FENCING_ACCEPTED, self.0.get().into());
        caches::keep_out(headers);
    }
}

impl Receipt {
    /// Sets [`FENCING_ACCEPTED`] on a response. With axum, make the receipt a part of it instead.
    ///
    /// Sets `Cache-Control: no-store`, too: a cache that repeats the answer would say "accepted"
    /// where no store was asked.
    ///
    /// A [`FencingLayer`](super::FencingLayer) takes the header off again where no receipt set it.
    pub fn set_accepted<B>(&self, response: &mut Response<B>) {
        let accepted = Accepted(self.token());
        accepted.set(response.headers_mut());
        response.extensions_mut().insert(accepted);
    }
}

/// Sets the headers as the receipt said, or takes the acceptance off if there was none.
pub(super) fn verify<B>(response: &mut Response<B>) {
    match response.extensions().get::<Accepted>().copied() {
        Some(accepted) => accepted.set(response.headers_mut()),
        None => {
            response.headers_mut().remove(&FENCING_ACCEPTED);
        }
    }
}
