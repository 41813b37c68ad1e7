use axum::{Router, http::header::AUTHORIZATION, middleware::from_fn_with_state, routing::put};
use fenced_http::ProblemType;
use tower_service::Service;

use super::*;
use crate::{
    api::wire::CLIENT_HEADER,
    events::{ClientName, Event, Story},
};

const PATH: &str = "/v1/accounts/1";

/// A recorder with the account on stage.
fn recorder() -> Recorder {
    let recorder = Recorder::new(|_| ());
    recorder.stage(account(), 1, Act::Fenced, Story::Deposits);
    recorder
}

fn account() -> ResourceName {
    ResourceName::new("account:1").unwrap()
}

/// The answer to a write of a client of the scenario. The service behind refuses every request as
/// stale.
async fn write(recorder: &Recorder, request: request::Builder, body: impl Into<Body>) -> Response {
    let stale = async || Problem::new(ProblemType::TOKEN_STALE);
    let tapped = from_fn_with_state(recorder.clone(), take_down);
    let mut router = Router::new().route(PATH, put(stale)).layer(tapped);
    let request = request.header(CLIENT_HEADER, ClientName::One.as_str());
    let request = request.method(Method::PUT).uri(PATH);
    router
        .call(request.body(body.into()).unwrap())
        .await
        .unwrap()
}

fn is_refusal(event: &Event) -> bool {
    matches!(event.what, What::WriteRefused { status: 412, .. })
}

/// Catches: a story without its end, because a client sent many requests.
#[tokio::test]
async fn a_refusal_is_noted_when_no_more_requests_are_kept() {
    let recorder = recorder();
    let mut kept = 0;
    while let Some(_id) = recorder.begin_exchange(&account(), Message::default()) {
        kept += 1;
        assert!(kept < 100_000, "without bound");
    }
    let refused = write(&recorder, request::Builder::new(), "{\"balance\":5}").await;
    assert_eq!(refused.status(), StatusCode::PRECONDITION_FAILED);
    let events = recorder.events();
    let [refusal] = &events[..] else {
        panic!("one event is noted: {events:?}")
    };
    assert!(
        is_refusal(refusal) && refusal.exchange.is_none(),
        "{refusal:?}"
    );
}

/// Catches: a token of operators that the live page shows.
#[tokio::test]
async fn the_admin_token_is_not_taken_down() {
    let recorder = recorder();
    let request = request::Builder::new()
        .header(AUTHORIZATION, "Bearer hunter2")
        .header("x-other", "shown");
    write(&recorder, request, "{}").await;
    let events = recorder.events();
    let id = events.iter().find_map(|event| event.exchange).unwrap();
    let exchange = recorder.exchange(id).unwrap();
    let shown = format!("{:?}", exchange.request.headers);
    assert!(shown.contains("x-other"), "{shown}");
    assert!(
        !shown.contains("hunter2") && !shown.contains("authorization"),
        "{shown}"
    );
}
