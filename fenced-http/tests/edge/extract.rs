//! The layer, the extractor and the responses in an axum router.

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::DefaultBodyLimit,
    routing::{get, put},
};
use fenced_http::{
    FENCING_ACCEPTED, FENCING_TOKEN, Fenced, FencingHeader, FencingLayer, Scope, Unsigned,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use lock_core::{Issuer, Sequencer};
use tower::ServiceExt;

use crate::grant::sequencer;

fn unsigned() -> Unsigned {
    Unsigned::new(Issuer::new("redis").unwrap())
}

fn required() -> FencingLayer<Unsigned> {
    FencingLayer::required(unsigned()).resource(Scope::path("/accounts/", "account:"))
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

#[tokio::test]
async fn the_extractor_gives_the_whole_sequencer() {
    let router = Router::new().route("/accounts/{id}", put(show).route_layer(required()));
    let response = send(&router, Method::PUT, "/accounts/42", Some(&sequencer(34))).await;
    assert_eq!(text(response).await, "account:42 34");
    let response = send(&router, Method::PUT, "/accounts/43", Some(&sequencer(34))).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn what_is_not_there_stays_404_and_405() {
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

#[tokio::test]
async fn a_wrong_body_stays_415_and_400() {
    let handler = async |_: Fenced, Json(_): Json<serde_json::Value>| "written";
    let router = Router::new().route("/accounts/{id}", put(handler).route_layer(required()));
    let response = send(&router, Method::PUT, "/accounts/42", Some(&sequencer(34))).await;
    assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let request = Request::put("/accounts/42")
        .header(&FENCING_TOKEN, FencingHeader::new(&sequencer(34)))
        .header("content-type", "application/json")
        .body(Body::from("{"))
        .unwrap();
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_body_that_is_too_long_stays_413() {
    let handler = async |_: Fenced, _: Bytes| "written";
    let handler = put(handler).route_layer(required());
    let router = Router::new().route("/accounts/{id}", handler.layer(DefaultBodyLimit::max(10)));
    let request = Request::put("/accounts/42")
        .header(&FENCING_TOKEN, FencingHeader::new(&sequencer(34)))
        .body(Body::from("more than ten"))
        .unwrap();
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn an_optional_token_is_there_or_not() {
    let layer = FencingLayer::optional(unsigned()).methods([Method::GET]);
    let router = Router::new().route("/accounts/{id}", get(show_if_any).route_layer(layer));
    let response = send(&router, Method::GET, "/accounts/42", None).await;
    assert_eq!(text(response).await, "none");
    let response = send(&router, Method::GET, "/accounts/42", Some(&sequencer(34))).await;
    assert_eq!(text(response).await, "34");
}

/// The router answers it with the handler of GET, which asks for what the layer leaves.
#[tokio::test]
async fn head_of_a_fenced_read_is_answered_as_its_get() {
    let layer = FencingLayer::optional(unsigned()).methods([Method::GET]);
    let router = Router::new().route("/accounts/{id}", get(show_if_any).route_layer(layer));
    for token in [None, Some(&sequencer(34))] {
        let response = send(&router, Method::HEAD, "/accounts/42", token).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(text(response).await, "");
    }
}

#[tokio::test]
async fn a_handler_that_needs_a_token_gets_one_behind_an_optional_layer_too() {
    let layer = FencingLayer::optional(unsigned());
    let router = Router::new().route("/accounts/{id}", put(show).route_layer(layer));
    let response = send(&router, Method::PUT, "/accounts/42", None).await;
    assert_eq!(response.status(), StatusCode::PRECONDITION_REQUIRED);
    let response = send(&router, Method::PUT, "/accounts/42", Some(&sequencer(34))).await;
    assert_eq!(text(response).await, "account:42 34");
}

/// Without the layer nobody has looked at the token: to say "no token" would be a lie.
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

#[tokio::test]
async fn a_handler_that_ignores_the_token_gets_no_fencing_accepted() {
    let router = Router::new().route(
        "/accounts/{id}",
        put(async || "written, without a fence").route_layer(required()),
    );
    let response = send(&router, Method::PUT, "/accounts/42", Some(&sequencer(34))).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!response.headers().contains_key(&FENCING_ACCEPTED));
}
