//! The layer around a plain tower service: requests that pass, requests that are refused, and
//! requests that the layer does not check.

use std::{
    future::{Ready, ready},
    task::{Context, Poll},
};

use bytes::Bytes;
use fenced_http::{
    FENCING_TOKEN, Fenced, Fencing, FencingHeader, FencingLayer, ResponseFuture, Scope, Signature,
    Unsigned,
};
use http::{HeaderValue, Method, Request, Response, StatusCode, header::VARY};
use http_body_util::{BodyExt, Full};
use lock_core::{FencingToken, Holder, Issuer, Plausibility, ResourceName};
use tower::{Layer, Service, ServiceExt};

use crate::grant::sequencer;

type Body = Full<Bytes>;

/// Counts its calls, panics if it was not polled ready before a call, and answers with the headers
/// of the request.
#[derive(Debug, Default)]
struct Leaf {
    ready: bool,
    calls: usize,
}

/// As in a service with a concurrency limit, a clone of an instance that was polled ready is not
/// ready.
impl Clone for Leaf {
    fn clone(&self) -> Self {
        Self {
            ready: false,
            calls: self.calls,
        }
    }
}

/// An error that converts into no boxed error, so that the compiler notices a layer that boxes
/// errors.
#[derive(Debug, PartialEq)]
struct LeafError;

impl Service<Request<()>> for Leaf {
    type Response = Response<Body>;
    type Error = LeafError;
    type Future = Ready<Result<Self::Response, LeafError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LeafError>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        assert!(self.ready, "called without having been polled ready");
        self.ready = false;
        self.calls += 1;
        ready(match request.uri().path() {
            "/broken" => Err(LeafError),
            "/varies" => {
                let mut response = Response::new(Full::default());
                let headers = response.headers_mut();
                headers.insert(VARY, HeaderValue::from_static("accept"));
                Ok(response)
            }
            _ => {
                let token = request
                    .extensions()
                    .get()
                    .map(|fenced: &Fenced| fenced.token().to_string());
                let headers = format!("{:?}", request.headers());
                let mut response = Response::new(Full::from(token.unwrap_or_default()));
                response
                    .headers_mut()
                    .insert("seen", headers.parse().unwrap());
                Ok(response)
            }
        })
    }
}

fn issuer() -> Issuer {
    Issuer::new("redis").unwrap()
}

fn unsigned() -> Unsigned {
    Unsigned::new(issuer()).plausibility(Plausibility::up_to(FencingToken::new(1000).unwrap()))
}

fn layer() -> FencingLayer<Unsigned> {
    FencingLayer::required(unsigned(), Scope::path("/accounts/", "account:"))
}

fn put(path: &str, values: &[HeaderValue]) -> Request<()> {
    let mut request = Request::put(path).body(()).unwrap();
    for value in values {
        request.headers_mut().append(&FENCING_TOKEN, value.clone());
    }
    request
}

fn value(header: FencingHeader<'_>) -> HeaderValue {
    header.try_into().unwrap()
}

async fn text(response: Response<Body>) -> String {
    let Ok(body) = response.into_body().collect().await;
    String::from_utf8(body.to_bytes().into()).unwrap()
}

async fn problem_slug(response: Response<Body>) -> String {
    let problem: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
    let uri = problem["type"].as_str().unwrap();
    uri.strip_prefix("urn:palisade:problem:")
        .unwrap()
        .to_owned()
}

async fn send(request: Request<()>) -> Response<Body> {
    let service = layer().layer(Leaf::default());
    service.oneshot(request).await.unwrap()
}

/// Sends a request that has to be refused, and checks that the handler is not called.
async fn refused(path: &str, values: &[HeaderValue], status: u16, slug: &str) {
    let mut service = layer().layer(Leaf::default());
    let ready = service.ready().await.unwrap();
    let response = ready.call(put(path, values)).await.unwrap();
    assert_eq!(response.status(), status, "{path} {values:?}");
    let media_type = &response.headers()["content-type"];
    assert_eq!(media_type, "application/problem+json");
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(problem_slug(response).await, slug, "{path} {values:?}");
    assert_eq!(service.get_ref().calls, 0);
}

/// Each wrong token is refused with its status and problem.
#[tokio::test]
async fn a_wrong_token_is_refused() {
    const MALFORMED: (u16, &str) = (400, "fencing-token-malformed");
    refused("/accounts/42", &[], 428, "fencing-token-required").await;
    let right = value(FencingHeader::new(&sequencer(34)));
    let text = right.to_str().unwrap();
    let wrong_name = |name: &str| text.replace("account:42", name);
    let not_text = HeaderValue::from_bytes(b"\xff\xfe").unwrap();
    let mut refusals = vec![(not_text, MALFORMED)];
    for malformed in [
        "",
        "34",
        " 34 ",
        "-1",
        "18446744073709551616",
        &"1".repeat(10_000),
        &format!("{text}, {text}"),
        // A client that sends `seq` expects that its writes keep their order, which the layer does
        // not do.
        &format!("{text};seq=7"),
        &wrong_name(""),
        &wrong_name("account 42"),
        &wrong_name(&"x".repeat(257)),
    ] {
        refusals.push((malformed.parse().unwrap(), MALFORMED));
    }
    let signature = Signature::new("k2", &[7; 16]).unwrap();
    let ours = sequencer(34);
    let signed = value(FencingHeader::new(&ours).signed(signature));
    refusals.push((signed, (403, "fencing-token-not-accepted")));
    let implausible = value(FencingHeader::new(&sequencer(1001)));
    refusals.push((implausible, (403, "fencing-token-implausible")));
    let foreign = text.replace("redis", "etcd").parse().unwrap();
    refusals.push((foreign, (403, "fencing-token-wrong-issuer")));
    for (value, (status, slug)) in refusals {
        refused("/accounts/42", &[value], status, slug).await;
    }
    let twice = [right.clone(), right.clone()];
    refused("/accounts/42", &twice, MALFORMED.0, MALFORMED.1).await;
    let elsewhere = "fencing-token-wrong-resource";
    refused("/accounts/43", &[right], 403, elsewhere).await;
}

/// The problem of a request with a token of account:42, from a layer with this scope.
async fn wrong_resource(scope: Scope, request: Request<()>) -> serde_json::Value {
    let layer = FencingLayer::required(unsigned(), scope);
    let mut request = request;
    let token = value(FencingHeader::new(&sequencer(34)));
    request.headers_mut().insert(&FENCING_TOKEN, token);
    let response = layer.layer(Leaf::default()).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
    serde_json::from_str(&text(response).await).unwrap()
}

/// A client sees the resource of its token, and the resource of its request.
#[tokio::test]
async fn the_refusal_of_a_token_for_another_resource_has_both_names() {
    let path = Scope::path("/accounts/", "account:");
    let header = Scope::header("x-resource".parse().unwrap());
    let by_header = Request::put("/").header("x-resource", "account:43");
    for (scope, request) in [
        (path.clone(), put("/accounts/43", &[])),
        (path.clone(), put("/accounts/%34%33/deposit?x=1", &[])),
        (header, by_header.body(()).unwrap()),
    ] {
        let problem = wrong_resource(scope, request).await;
        assert_eq!(problem["token_resource"], "account:42");
        assert_eq!(problem["request_resource"], "account:43");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("account:42, ") && detail.contains("account:43: "),
            "{detail}"
        );
    }
    for request in ["/accounts/", "/accounts/%ff", "/accounts/a%20b", "/other"] {
        let problem = wrong_resource(path.clone(), put(request, &[])).await;
        assert_eq!(problem["token_resource"], "account:42");
        assert_eq!(
            problem.get("request_resource"),
            None,
            "{request}: no legal name"
        );
    }
}

/// A function of the service may know more than the client.
#[tokio::test]
async fn a_name_that_the_client_did_not_send_is_not_told() {
    let tenant = Scope::from_fn(|_| ResourceName::new("tenant-7:account:42").ok());
    let problem = wrong_resource(tenant, put("/accounts/42", &[])).await;
    assert_eq!(problem["token_resource"], "account:42");
    assert!(!problem.to_string().contains("tenant-7"), "{problem}");
}

/// Catches: an answer that quotes the header.
#[tokio::test]
async fn a_refusal_never_repeats_the_holder() {
    let holder = Holder::random().expose();
    for text in [
        format!("34;res=\"account:42\";iss=\"redis\";hld=\"{holder}0\""),
        format!("34;res=\"account:42\";iss=\"etcd\";hld=\"{holder}\""),
        format!("34;res=\"account:42\";hld=\"{holder}\""),
        format!("34;{holder}"),
    ] {
        let response = send(put("/accounts/42", &[text.parse().unwrap()])).await;
        assert!(response.status().is_client_error());
        assert!(!self::text(response).await.contains(&holder[..8]));
    }
}

/// The inner service is called on the instance that was polled ready, after passes and refusals.
/// Catches: a clone that is called in the place of the instance that was polled.
#[tokio::test]
async fn a_strict_service_is_always_polled_ready_before_its_call() {
    let mut service = layer().layer(Leaf::default());
    let right = value(FencingHeader::new(&sequencer(34)));
    let (with, without): (&[HeaderValue], &[HeaderValue]) = (&[right], &[]);
    for values in [with, without, with, with] {
        let service = service.ready().await.unwrap();
        let response = service.call(put("/accounts/42", values)).await.unwrap();
        assert_eq!(response.status().is_success(), !values.is_empty());
    }
    assert_eq!(service.into_inner().calls, 3);
}

/// Both type annotations are the test: no boxed error, no boxed future.
#[tokio::test]
async fn error_and_future_are_those_of_the_inner_service() {
    let mut service: Fencing<Leaf, Unsigned> =
        FencingLayer::required(unsigned(), Scope::compared_by_handler()).layer(Leaf::default());
    let request = put("/broken", &[value(FencingHeader::new(&sequencer(34)))]);
    let future: ResponseFuture<Ready<Result<Response<Body>, LeafError>>> =
        service.ready().await.unwrap().call(request);
    let error: LeafError = future.await.unwrap_err();
    assert_eq!(error, LeafError);
}

/// Catches: an unknown method that passes as a read.
#[tokio::test]
async fn methods_that_change_nothing_pass_unless_they_are_asked_for() {
    let send = async |layer: FencingLayer<Unsigned>, method: Method| {
        let request = Request::builder()
            .method(method)
            .uri("/accounts/42")
            .body(())
            .unwrap();
        layer
            .layer(Leaf::default())
            .oneshot(request)
            .await
            .unwrap()
            .status()
            .as_u16()
    };
    for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
        let read = method.parse().unwrap();
        assert_eq!(send(layer(), read).await, 200, "{method}");
    }
    for method in [
        "PUT", "POST", "PATCH", "DELETE", "CONNECT", "put", "get", "MKCOL", "QUERY",
    ] {
        let write = method.parse().unwrap();
        assert_eq!(send(layer(), write).await, 428, "{method}");
    }
    let reads_only = || layer().methods([Method::GET]);
    assert_eq!(send(reads_only(), Method::GET).await, 428);
    assert_eq!(send(reads_only(), Method::HEAD).await, 428);
    assert_eq!(send(reads_only(), Method::PUT).await, 200);
}

/// Otherwise a cache would give one holder the answer to another.
#[tokio::test]
async fn an_answer_varies_by_token_if_the_layer_has_looked() {
    let layer = FencingLayer::optional(unsigned(), Scope::compared_by_handler())
        .methods([Method::GET, Method::PUT]);
    let varies = async |method: &str, path: &str, values: &[HeaderValue]| {
        let mut request = put(path, values);
        *request.method_mut() = method.parse().unwrap();
        let service = layer.clone().layer(Leaf::default());
        let response = service.oneshot(request).await.unwrap();
        let vary = response.headers().get_all(VARY).iter();
        vary.map(|name| name.to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let right = [value(FencingHeader::new(&sequencer(34)))];
    let implausible = [value(FencingHeader::new(&sequencer(1001)))];
    for method in ["GET", "HEAD", "PUT"] {
        for values in [&right[..], &[], &implausible] {
            assert_eq!(varies(method, "/", values).await, ["fencing-token"]);
        }
    }
    let both = ["accept", "fencing-token"];
    assert_eq!(varies("GET", "/varies", &right).await, both);
    assert_eq!(varies("POST", "/varies", &right).await, ["accept"]);
}

/// Catches: a wrong token that is taken for none.
#[tokio::test]
async fn an_optional_token_may_be_missing_but_not_wrong() {
    let layer = FencingLayer::optional(unsigned(), Scope::compared_by_handler());
    let send = async |values: &[HeaderValue]| {
        let request = put("/accounts/42", values);
        layer
            .clone()
            .layer(Leaf::default())
            .oneshot(request)
            .await
            .unwrap()
    };
    assert_eq!(text(send(&[]).await).await, "");
    assert_eq!(
        text(send(&[value(FencingHeader::new(&sequencer(34)))]).await).await,
        "34"
    );
    assert_eq!(
        send(&["34".parse().unwrap()]).await.status(),
        StatusCode::BAD_REQUEST
    );
    let implausible = value(FencingHeader::new(&sequencer(1001)));
    assert_eq!(send(&[implausible]).await.status(), StatusCode::FORBIDDEN);
}

/// Catches: a secret in the log of a handler.
#[tokio::test]
async fn the_inner_service_sees_a_header_that_does_not_print() {
    let sequencer = sequencer(34);
    let text = value(FencingHeader::new(&sequencer))
        .to_str()
        .unwrap()
        .to_owned();
    let value: HeaderValue = text.parse().unwrap();
    let once = put("/accounts/42", std::slice::from_ref(&value));
    let mut twice_and_not_looked_at = put("/accounts/42", &[value.clone(), value]);
    *twice_and_not_looked_at.method_mut() = Method::GET;
    for request in [once, twice_and_not_looked_at] {
        let response = send(request).await;
        let seen = response.headers()["seen"].to_str().unwrap();
        assert!(
            seen.contains("fencing-token") && !seen.contains(&sequencer.holder().expose()),
            "{seen}"
        );
    }
}
