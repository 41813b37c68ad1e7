//! What the store tells over HTTP: receipts, and its errors as problem documents. The rest of the
//! edge is `fenced_http`.

mod accepted;
mod outage;
mod problem;
#[cfg(feature = "axum")]
mod respond;

use fenced_http::Fenced;

use crate::Presented;

impl<'a> From<&'a Fenced> for Presented<'a> {
    fn from(fenced: &'a Fenced) -> Self {
        Self::from(fenced.sequencer())
    }
}
