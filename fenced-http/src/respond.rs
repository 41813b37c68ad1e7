//! Refusals as responses of axum.

use axum_core::response::{IntoResponse, Response};

use crate::{Problem, Rejection};

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
