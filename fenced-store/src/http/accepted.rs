//! A receipt as `Fencing-Accepted`.

use fenced_http::Accepted;
use http::Response;

use crate::Receipt;

impl Receipt {
    /// Sets `Fencing-Accepted` on a response. With axum, make the receipt a part of it instead.
    ///
    /// Sets `Cache-Control: no-store`, too: a cache that repeats the answer would say "accepted"
    /// where no store was asked.
    ///
    /// A [`FencingLayer`](fenced_http::FencingLayer) takes the header off again where no receipt
    /// set it.
    pub fn set_accepted<B>(&self, response: &mut Response<B>) {
        let accepted = self.accepted();
        accepted.set(response.headers_mut());
        response.extensions_mut().insert(accepted);
    }

    /// The one place where an acceptance is made.
    pub(super) fn accepted(&self) -> Accepted {
        Accepted::by_receipt(self.token())
    }
}
