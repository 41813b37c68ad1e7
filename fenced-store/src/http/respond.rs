//! Refusals as responses, and receipts as a part of one.

use std::convert::Infallible;

use axum_core::response::{IntoResponse, IntoResponseParts, Response, ResponseParts};

use super::{Problem, Rejection, accepted::Accepted};
use crate::{FenceError, Receipt};

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.to_response()
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        self.to_response()
    }
}

/// A problem document; see the table in [`http`](crate::http).
///
/// What the database said goes to the log, not to the client.
impl IntoResponse for FenceError {
    fn into_response(self) -> Response {
        let problem = Problem::from(&self);
        if problem.kind().status().is_server_error() {
            let source = std::error::Error::source(&self).map(tracing::field::display);
            tracing::error!(error = %self, source, "a fenced write failed");
        }
        problem.into_response()
    }
}

/// Sets `Fencing-Accepted` and `Cache-Control: no-store`. A handler that ignored the token has no
/// receipt, and what it sets by hand the layer takes off.
impl IntoResponseParts for Receipt {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        let accepted = Accepted(self.token());
        accepted.set(response.headers_mut());
        response.extensions_mut().insert(accepted);
        Ok(response)
    }
}

/// 200 with `Fencing-Accepted` and nothing else.
impl IntoResponse for Receipt {
    fn into_response(self) -> Response {
        (self, ()).into_response()
    }
}
