//! The layer, the extractor and the responses in an axum router.

use axum::{
    Router,
    body::Body,
    routing::{get, put},
};
use fenced_http::{FENCING_TOKEN, Fenced, FencingHeader, FencingLayer, Scope, Unsigned};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use lock_core::{Issuer, Sequencer};
use tower::ServiceExt;

use crate::grant::sequencer;

fn unsigned() -> Unsigned {
    Unsigned::new(Issuer::new("redis").unwrap())
}

fn required() -> FencingLayer<Unsigned> {
    FencingLayer::required(unsigned(), Scope::path("/accounts/", "account:"))
}

async fn show(fenced: Fenced) -> String {
    format!("{} {}", fenced.resource(), fenced.token())
}

async fn show_if_any(fenced: Option<Fenced>) -> String {
    fenced.map_or("none".into(), |fenced| fenced.token().to_string())
}

async fn send(
    router: &Router,
    method: Method,
    path: &str,
    sequencer: Option<&Sequencer>,
) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(sequencer) = sequencer {
        request = request.header(&FENCING_TOKEN, FencingHeader::new(sequencer));
    }
    let request = request.body(Body::empty()).unwrap();
    router.clone().oneshot(request).await.unwrap()
}

async fn text(response: Response<Body>) -> String {
    let body = response.into_body().collect().await.unwrap();
    String::from_utf8(body.to_bytes().into()).unwrap()
}

/// Catches: a layer that answers for routes which do not exist.
#[tokio::test]
async fn missing_routes_and_methods_stay_404_and_405() {
    let methods = put(show).route_layer(required()).get(|| async { "read" });
    let router = Router::new().route("/accounts/{id}", methods);
    for (method, path, status) in [
        (Method::GET, "/accounts/42", 200),
        (Method::PUT, "/accounts/42", 428),
        (Method::DELETE, "/accounts/42", 405),
        (Method::POST, "/accounts/42", 405),
        (Method::PUT, "/nowhere", 404),
    ] {
        let response = send(&router, method.clone(), path, None).await;
        assert_eq!(response.status(), status, "{method} {path}");
    }
}

/// The router answers a HEAD with the handler of GET, which needs the token that the layer has
/// checked.
/// Catches: a HEAD that the layer has not checked.
#[tokio::test]
async fn head_of_a_fenced_read_is_answered_as_its_get() {
    let layer =
        FencingLayer::optional(unsigned(), Scope::compared_by_handler()).methods([Method::GET]);
    let router = Router::new().route("/accounts/{id}", get(show_if_any).route_layer(layer));
    for token in [None, Some(&sequencer(34))] {
        let response = send(&router, Method::HEAD, "/accounts/42", token).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(text(response).await, "");
    }
}

/// Catches: a missing token that a handler does not notice.
#[tokio::test]
async fn a_handler_that_needs_a_token_gets_one_behind_an_optional_layer_too() {
    let layer = FencingLayer::optional(unsigned(), Scope::compared_by_handler());
    let router = Router::new().route("/accounts/{id}", put(show).route_layer(layer));
    let response = send(&router, Method::PUT, "/accounts/42", None).await;
    assert_eq!(response.status(), StatusCode::PRECONDITION_REQUIRED);
    let response = send(&router, Method::PUT, "/accounts/42", Some(&sequencer(34))).await;
    assert_eq!(text(response).await, "account:42 34");
}

/// Without the layer the token is unchecked, so the answer "no token" would be wrong.
#[tokio::test]
async fn without_the_layer_both_extractors_are_a_fault_of_the_service() {
    let router = Router::new()
        .route("/required", put(show))
        .route("/optional", put(show_if_any))
        .route("/other-method", get(show_if_any).route_layer(required()));
    for (method, path) in [
        (Method::PUT, "/required"),
        (Method::PUT, "/optional"),
        (Method::GET, "/other-method"),
    ] {
        let response = send(&router, method, path, Some(&sequencer(34))).await;
        assert_eq!(
            response.status(),
            StatusCode::INTERNAL_SERVER_ERROR,
            "{path}"
        );
        assert!(
            text(response)
                .await
                .contains("urn:palisade:problem:fencing-service-fault")
        );
    }
}
