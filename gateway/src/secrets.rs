//! Headers whose values are secrets: a client that knows such a value can pose as its sender.

use axum::http::{
    HeaderMap,
    header::{AUTHORIZATION, Entry},
};
use fenced_http::FENCING_TOKEN;

use crate::idempotency::IDEMPOTENCY_KEY;

/// Marks the secret headers as sensitive, so that `Debug` does not show their values.
pub(crate) fn hide(headers: &mut HeaderMap) {
    for name in [FENCING_TOKEN.clone(), IDEMPOTENCY_KEY, AUTHORIZATION] {
        if let Entry::Occupied(mut values) = headers.entry(name) {
            values
                .iter_mut()
                .for_each(|value| value.set_sensitive(true));
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, extract::Request, routing::get};

    use crate::{
        edge::Edge,
        own_name::{HostNames, OwnNames},
    };

    #[tokio::test]
    async fn no_secret_header_is_printed_by_what_is_further_in() {
        let echo = get(async |request: Request| format!("{:?}", request.headers()));
        let edge = Edge::new(
            Router::new().route("/", echo),
            OwnNames::at(std::net::Ipv4Addr::UNSPECIFIED.into(), HostNames::default()),
        );
        let mut request = Request::get("/").header("demo-client", "visible");
        for name in ["fencing-token", "idempotency-key", "authorization"] {
            for value in ["secret-1", "secret-2"] {
                request = request.header(name, value);
            }
        }
        let answer = edge.answer(request.body(Body::empty()).unwrap()).await;
        let body = axum::body::to_bytes(answer.into_body(), 4096).await;
        let text = String::from_utf8(body.unwrap().to_vec()).unwrap();
        assert!(text.contains("visible"), "{text}");
        assert!(!text.contains("secret-"), "{text}");
        assert_eq!(text.matches("Sensitive").count(), 6, "{text}");
    }
}
