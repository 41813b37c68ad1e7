//! `/openapi.json`, and its page for people, `/docs`. The viewer is a part of the program, so the
//! page loads nothing from another host.

use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::Value;
use utoipa_swagger_ui::{Config, SwaggerUi};

/// The longest page that is changed. The page of the viewer has less than one kilobyte, and its
/// scripts are other files.
const PAGE_BYTES_MAX: usize = 64 * 1024;

const DOCUMENT: &str = "/openapi.json";

/// The viewer has styles in attributes, and pictures in `data:` addresses.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Both routes, for this document.
pub fn documentation(document: Value) -> Router {
    let config = Config::from(DOCUMENT)
        .validator_url("none")
        .display_request_duration(true)
        .doc_expansion("list");
    let viewer = Router::from(SwaggerUi::new("/docs").config(config));
    viewer
        .layer(middleware::from_fn(fitted))
        .layer(middleware::from_fn(guarded))
        .route(DOCUMENT, get(move || async move { Json(document) }))
}

/// Without this element, phones take a page for one that was made for a desktop, and show it small.
const VIEWPORT: &str = "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">";

/// Adds [`VIEWPORT`] to the page of the viewer, which has no such element.
async fn fitted(request: Request, next: Next) -> Response {
    let (mut head, body) = next.run(request).await.into_parts();
    let kind = head.headers.get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| !kind.as_bytes().starts_with(b"text/html")) {
        return Response::from_parts(head, body);
    }
    let Ok(page) = to_bytes(body, PAGE_BYTES_MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let page = String::from_utf8_lossy(&page).replacen("<head>", &format!("<head>{VIEWPORT}"), 1);
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, Body::from(page))
}

async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let policy = HeaderValue::from_static(POLICY);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
