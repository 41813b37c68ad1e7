//! What the live page asks of the gateway. The page itself is looked at by `live_page.rs`.

use std::time::Duration;

use reqwest::{Method, header};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::gateway::{Gateway, send};

/// Far longer than a run takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Follows the run as the page does, until it looks as wanted.
async fn view_when(gateway: &Gateway, wanted: impl Fn(&Value) -> bool + Send + Sync) -> Value {
    let mut changes = gateway
        .request(Method::GET, "/live/changes")
        .send()
        .await
        .unwrap();
    let looking = async {
        loop {
            let view = send(gateway.request(Method::GET, "/live/run")).await.body;
            if wanted(&view) {
                return view;
            }
            assert!(
                changes.chunk().await.unwrap().is_some(),
                "the changes ended: {view}"
            );
        }
    };
    timeout(PATIENCE, looking)
        .await
        .expect("the run does not go on")
}

async fn play(gateway: &Gateway, settings: Value) -> crate::gateway::Answer {
    send(gateway.request(Method::POST, "/live/run").json(&settings)).await
}

async fn cue(gateway: &Gateway, cue: &str) {
    let request = gateway.request(Method::POST, "/live/cue").json(&json!(cue));
    assert_eq!(send(request).await.status, 202);
}

fn is_over(view: &Value) -> bool {
    view["playing"] == false && view["run"] != 0
}

fn client_1_is(state: &'static str) -> impl Fn(&Value) -> bool {
    move |view| {
        let acts = view["acts"].as_array().unwrap();
        acts.iter().all(|act| act["client_1"] == state)
    }
}

#[tokio::test]
async fn both_acts_go_as_told_and_are_drawn() {
    let gateway = Gateway::start().await;
    let settings = json!({ "ttl_ms": 500, "pause_ms": 900 });
    assert_eq!(play(&gateway, settings.clone()).await.status, 202);
    play(&gateway, settings)
        .await
        .assert_problem(409, "run-under-way");
    let view = view_when(&gateway, is_over).await;
    assert_eq!(view["acts"][0]["verdict"]["good"], false, "{view:#}");
    assert_eq!(view["acts"][1]["verdict"]["good"], true, "{view:#}");

    let picture = async |query: &str| {
        let path = format!("/live/picture/fenced{query}");
        let answer = gateway.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "image/svg+xml");
        answer.text().await.unwrap()
    };
    let (whole, beginning) = (picture("").await, picture("?until_ms=400").await);
    assert!(whole.contains("writes 110: refused"), "{whole}");
    assert!(
        beginning.contains("reads 100") && !beginning.contains("writes 1"),
        "{beginning}"
    );

    // There is no picture of the future, however much of it is asked for.
    let future = picture(&format!("?until_ms={}", u64::MAX)).await;
    assert!(future.len() < 2 * whole.len(), "{} bytes", future.len());

    let recording = send(gateway.request(Method::GET, "/live/recording.json")).await;
    let kinds: Vec<_> = recording.body.as_array().unwrap().iter().collect();
    assert!(kinds.iter().any(|event| event["kind"] == "write_refused"));
}

#[tokio::test]
async fn a_visitor_stops_client_1_and_a_pause_shorter_than_the_lease_does_no_harm() {
    let gateway = Gateway::start().await;
    let settings = json!({ "ttl_ms": 10_000, "pause_ms": 0, "by_hand": true });
    play(&gateway, settings).await;
    let begun = |view: &Value| view["acts"][0]["client_1"] == "running";
    view_when(&gateway, begun).await;
    cue(&gateway, "pause").await;
    view_when(&gateway, client_1_is("stopped")).await;
    cue(&gateway, "resume").await;
    let view = view_when(&gateway, is_over).await;
    for act in view["acts"].as_array().unwrap() {
        assert_eq!(act["verdict"]["good"], true, "{view:#}");
    }
}

#[tokio::test]
async fn a_page_of_somebody_else_can_start_nothing() {
    let gateway = Gateway::start().await;
    let run = || {
        let settings = json!({ "ttl_ms": 500, "pause_ms": 900 });
        gateway.request(Method::POST, "/live/run").json(&settings)
    };
    let cross_site = run().header("sec-fetch-site", "cross-site");
    assert_eq!(send(cross_site).await.status, 403);
    let other_origin = run().header(header::ORIGIN, "http://evil.example");
    assert_eq!(send(other_origin).await.status, 403);
    // A name of theirs that leads here makes their page one of the same origin.
    let rebound = run().header(header::HOST, "evil.example");
    send(rebound).await.assert_problem(421, "misdirected");
    let view = send(gateway.request(Method::GET, "/live/run")).await.body;
    assert_eq!(view["run"], 0, "{view}");
}

#[tokio::test]
async fn settings_that_cannot_be_are_refused() {
    let gateway = Gateway::start().await;
    for (ttl_ms, pause_ms) in [(299, 0), (10_001, 0), (1000, 30_001)] {
        let settings = json!({ "ttl_ms": ttl_ms, "pause_ms": pause_ms });
        play(&gateway, settings)
            .await
            .assert_problem(422, "request-unprocessable");
    }
}

#[tokio::test]
async fn the_gateway_ends_although_a_page_listens_and_a_client_is_stopped() {
    let mut gateway = Gateway::start().await;
    let settings = json!({ "ttl_ms": 10_000, "pause_ms": 30_000 });
    play(&gateway, settings).await;
    let view = view_when(&gateway, client_1_is("stopped")).await;
    let mut changes = gateway
        .request(Method::GET, "/live/changes")
        .send()
        .await
        .unwrap();
    let pids: Vec<_> = view["acts"].as_array().unwrap().iter().map(pid).collect();
    kill_process(gateway.process.id(), Signal::TERM).unwrap();
    while let Ok(Some(_)) = changes.chunk().await {}
    let ended = timeout(PATIENCE, gateway.process.finish()).await.unwrap();
    assert_eq!(ended.code(), Some(0));
    for pid in pids {
        let gone = async {
            while e2e::signal::state(pid).is_some_and(|state| state != 'Z') {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, gone)
            .await
            .expect("a client is left behind");
    }
}

/// As the story tells it.
fn pid(act: &Value) -> rustix::process::Pid {
    let stopped = act["events"].as_array().unwrap().iter();
    let mut texts = stopped.map(|event| event["text"].as_str().unwrap());
    let text = texts.find(|text| text.contains("SIGSTOP")).unwrap();
    let digits = text.split_once("pid ").unwrap().1.trim_end_matches(')');
    e2e::signal::pid(digits.parse().unwrap()).unwrap()
}
