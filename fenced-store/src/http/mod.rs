//! The answers of a store over HTTP. `accepted.rs` sends a receipt as `Fencing-Accepted`, and
//! `problem.rs` an error as a problem document. `outage.rs` finds the errors that may pass, and
//! `respond.rs` is for axum. The rest of the edge is the crate `fenced_http`.

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
