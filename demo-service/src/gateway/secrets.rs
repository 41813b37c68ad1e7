//! Marks headers whose values are secrets, before anything that may print them.

use axum::{
    extract::Request,
    http::{HeaderName, header::AUTHORIZATION},
};
use fenced_http::FENCING_TOKEN;

use super::idempotency::IDEMPOTENCY_KEY;

/// Whoever knows one of them can pass for its sender.
fn is_secret(name: &HeaderName) -> bool {
    name == FENCING_TOKEN || name == IDEMPOTENCY_KEY || name == AUTHORIZATION
}

/// `Debug` of the request shows none of them from here on.
pub(super) fn mark(mut request: Request) -> Request {
    // `HeaderMap::get_mut` would reach the first value only.
    for (name, value) in request.headers_mut() {
        if is_secret(name) {
            value.set_sensitive(true);
        }
    }
    request
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, routing::get};
    use tower_service::Service;

    use super::*;
    use crate::gateway::{
        own_name::{HostNames, OwnNames},
        router::finish,
    };

    #[tokio::test]
    async fn no_secret_header_is_printed_by_what_is_further_in() {
        let echo = get(async |request: Request| format!("{:?}", request.headers()));
        let mut routes = finish(
            Router::new().route("/", echo),
            OwnNames::at(std::net::Ipv4Addr::UNSPECIFIED.into(), HostNames::default()),
        );
        let mut request = Request::get("/").header("demo-client", "visible");
        for name in ["fencing-token", "idempotency-key", "authorization"] {
            for value in ["secret-1", "secret-2"] {
                request = request.header(name, value);
            }
        }
        let answer = routes.call(request.body(Body::empty()).unwrap()).await;
        let body = axum::body::to_bytes(answer.unwrap().into_body(), 4096).await;
        let text = String::from_utf8(body.unwrap().to_vec()).unwrap();
        assert!(text.contains("visible"), "{text}");
        assert!(!text.contains("secret-"), "{text}");
        assert_eq!(text.matches("Sensitive").count(), 6, "{text}");
    }
}
