//! `/openapi.json`, and `/docs`, where people read it. The viewer is a part of the program: nothing
//! is loaded from anywhere else.

use axum::{
    Json, Router,
    extract::Request,
    http::{HeaderValue, header},
    middleware::{self, Next},
    response::Response,
    routing::get,
};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::document;

const DOCUMENT: &str = "/openapi.json";

/// The viewer brings styles in attributes, and pictures as data.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Both routes.
pub(in crate::gateway) fn routes(with_operators: bool) -> Router {
    let document = document(with_operators);
    let config = Config::from(DOCUMENT)
        .validator_url("none")
        .display_request_duration(true)
        .doc_expansion("list");
    let viewer = Router::from(SwaggerUi::new("/docs").config(config));
    viewer
        .layer(middleware::from_fn(guarded))
        .route(DOCUMENT, get(move || async move { Json(document) }))
}

async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let policy = HeaderValue::from_static(POLICY);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
