use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    http::{HeaderMap, header::CONTENT_LENGTH},
    response::{IntoResponse, Response},
};
use fenced_http::Problem;
use tokio::time::Instant;
use tower_service::Service;
use tracing::Instrument;

use crate::{own_name::OwnNames, problems, request_id, secrets};

/// The longest body. No request needs more than a few hundred bytes.
const BODY_LEN_MAX: usize = 16 * 1024;

/// All routes, and the work that is common to them. This work is no layer of the router, because
/// each layer is a box and is cloned for every request.
#[derive(Debug)]
pub(crate) struct Edge {
    routes: Router,
    names: OwnNames,
}

impl Edge {
    pub(crate) const fn new(routes: Router, names: OwnNames) -> Self {
        Self { routes, names }
    }

    /// Answers one request. All lines of the log about the request have its id, its method and its
    /// path. They have no headers, because some headers are secret.
    pub(crate) async fn answer(&self, mut request: Request) -> Response {
        secrets::hide(request.headers_mut());
        let id = request_id::of(request.headers());
        let span = tracing::info_span!(
            "request",
            request_id = id.to_str().unwrap_or_default(),
            method = %request.method(),
            path = request.uri().path(),
        );
        #[cfg(feature = "otel")]
        crate::trace::go_on(&span, request.headers());
        let mut answer = self.logged(request).instrument(span).await;
        answer.headers_mut().insert(request_id::NAME, id);
        answer
    }

    async fn logged(&self, request: Request) -> Response {
        let asked = Instant::now();
        let answer = problems::document(self.routed(request).await);
        let (latency, status) = (asked.elapsed().as_millis(), answer.status());
        // A request that this kind of lock service cannot serve is no failure.
        if status.is_server_error() && status != problems::LOCK_LACKS_IT.status() {
            tracing::error!(latency, status = status.as_u16(), "failed");
        } else {
            tracing::info!(latency, status = status.as_u16(), "answered");
        }
        answer
    }

    async fn routed(&self, mut request: Request) -> Response {
        if let Some(refusal) = self.names.refusal(&request) {
            return refusal.into_response();
        }
        if is_too_long(request.headers()) {
            return Problem::new(problems::TOO_LARGE).into_response();
        }
        DefaultBodyLimit::max(BODY_LEN_MAX).apply(&mut request);
        match self.routes.clone().call(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        }
    }
}

/// Whether the body is longer than any useful one. A body without a length is cut off while it is
/// read.
fn is_too_long(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    length.is_some_and(|length: usize| length > BODY_LEN_MAX)
}
