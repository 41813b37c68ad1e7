//! A receipt as `Fencing-Accepted`.

use fenced_http::Accepted;
use http::Response;

use crate::Receipt;

impl Receipt {
    /// Sets `Fencing-Accepted` on a response. With axum, make the receipt a part of the response
    /// instead.
    ///
    /// It also sets `Cache-Control: no-store`, because a cache would repeat "accepted" for a
    /// request that no store has checked.
    ///
    /// A [`FencingLayer`](fenced_http::FencingLayer) removes the header from a response on which no
    /// receipt has set it.
    pub fn set_accepted<B>(&self, response: &mut Response<B>) {
        let accepted = self.accepted();
        accepted.set(response.headers_mut());
        response.extensions_mut().insert(accepted);
    }

    /// The only place that makes an acceptance.
    pub(super) fn accepted(&self) -> Accepted {
        Accepted::by_receipt(self.token())
    }
}
