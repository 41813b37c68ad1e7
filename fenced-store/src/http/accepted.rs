//! `Fencing-Accepted`: set by a receipt, and by nothing else.

use http::Response;
use lock_core::FencingToken;

use super::FENCING_ACCEPTED;
use crate::Receipt;

/// What a receipt leaves beside the header. Only this crate can make one, so it cannot be forged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted(pub(super) FencingToken);

impl Receipt {
    /// Sets [`FENCING_ACCEPTED`] on a response. With axum, make the receipt a part of it instead.
    ///
    /// A [`FencingLayer`](super::FencingLayer) takes the header off again where no receipt set it.
    pub fn set_accepted<B>(&self, response: &mut Response<B>) {
        let token = self.token();
        response
            .headers_mut()
            .insert(&FENCING_ACCEPTED, token.get().into());
        response.extensions_mut().insert(Accepted(token));
    }
}

/// Sets the header as the receipt said, or takes it off if there was none.
pub(super) fn verify<B>(response: &mut Response<B>) {
    match response.extensions().get() {
        Some(Accepted(token)) => {
            let value = token.get().into();
            response.headers_mut().insert(&FENCING_ACCEPTED, value);
        }
        None => {
            response.headers_mut().remove(&FENCING_ACCEPTED);
        }
    }
}
