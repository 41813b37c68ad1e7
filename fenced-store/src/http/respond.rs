//! Errors as responses of axum, and receipts as a part of one.

use std::{convert::Infallible, error::Error};

use axum_core::response::{IntoResponse, IntoResponseParts, Response, ResponseParts};
use fenced_http::Problem;

use crate::{FenceError, FencedLockError, Receipt};

/// A problem document; see the table in [`fenced_http`].
///
/// The message of the database goes to the log, and not to the client.
impl IntoResponse for FenceError {
    fn into_response(self) -> Response {
        logged(Problem::from(&self), &self)
    }
}

/// For a handler that acquires the lease itself, and whose client has no token: 503 if another try
/// may help, 504 if the write may have been made, such as after a lost lease, and otherwise 500.
///
/// The message of the lock service or the database goes to the log, and not to the client.
impl IntoResponse for FencedLockError {
    fn into_response(self) -> Response {
        logged(Problem::from(&self), &self)
    }
}

fn logged(problem: Problem, error: &dyn Error) -> Response {
    if problem.kind().status().is_server_error() {
        let source = error.source().map(tracing::field::display);
        tracing::error!(%error, source, "a fenced write failed");
    }
    problem.into_response()
}

/// Sets `Fencing-Accepted` and `Cache-Control: no-store`. A handler that has ignored the token has
/// no receipt. The layer removes a `Fencing-Accepted` that a handler sets by hand.
impl IntoResponseParts for Receipt {
    type Error = Infallible;

    fn into_response_parts(self, mut response: ResponseParts) -> Result<ResponseParts, Infallible> {
        let accepted = self.accepted();
        accepted.set(response.headers_mut());
        response.extensions_mut().insert(accepted);
        Ok(response)
    }
}

/// 200 with `Fencing-Accepted` and an empty body.
impl IntoResponse for Receipt {
    fn into_response(self) -> Response {
        (self, ()).into_response()
    }
}
