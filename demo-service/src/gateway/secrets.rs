//! Headers whose values are secrets: who knows one of them can pass for its sender.

use axum::http::header::AUTHORIZATION;
use fenced_http::FENCING_TOKEN;
use tower_http::sensitive_headers::SetSensitiveRequestHeadersLayer;

use super::idempotency::IDEMPOTENCY_KEY;

/// `Debug` of the request shows none of them from there on.
pub(super) fn hidden() -> SetSensitiveRequestHeadersLayer {
    SetSensitiveRequestHeadersLayer::new([FENCING_TOKEN.clone(), IDEMPOTENCY_KEY, AUTHORIZATION])
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, extract::Request, routing::get};
    use tower_service::Service;

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
