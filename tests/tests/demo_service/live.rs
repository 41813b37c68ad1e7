//! The requests of the live page to the gateway. `live_page` tests the page itself.

use std::{path::Path, process::Command, time::Duration};

use e2e::warden::workspace_binary;
use reqwest::{Method, header};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::gateway::{Gateway, send};

/// A time far longer than a run.
const PATIENCE: Duration = Duration::from_secs(60);

/// Follows the run as the page does, until its view fulfils a condition.
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
    let settings = json!({ "ttl_ms": 1000, "pause_ms": 1500 });
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
    let recording = send(gateway.request(Method::GET, "/live/recording.json")).await;
    let mut events = recording.body["events"].as_array().unwrap().iter();
    let read = events.find(|event| event["act"] == "fenced" && event["kind"] == "read");
    let read = format!("?until_ms={}", read.unwrap()["at_ms"]);
    let (whole, beginning) = (picture("").await, picture(&read).await);
    assert!(whole.contains("writes 110: refused"), "{whole}");
    assert!(
        beginning.contains("reads 100") && !beginning.contains("writes 1"),
        "{beginning}"
    );

    // There is no picture of the future, even if a request asks for it.
    let future = picture(&format!("?until_ms={}", u64::MAX)).await;
    assert!(future.len() < 2 * whole.len(), "{} bytes", future.len());

    // The same code draws the saved recording again, so the picture has no new words.
    let kinds = recording.body["events"].as_array().unwrap().iter();
    assert!(kinds.clone().any(|event| event["kind"] == "write_refused"));
    let saved = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(saved.path(), recording.body.to_string()).unwrap();
    let drawn = drawn(saved.path());
    for label in labels(&whole) {
        assert!(labels(&drawn).contains(&label), "{label} is not drawn");
    }
    let words = recording.body.to_string();
    assert!(
        !words.contains("sig=") && !words.contains("hld="),
        "{words}"
    );
}

/// The picture that `draw` makes of a recording.
fn drawn(recording: &Path) -> String {
    let mut draw = Command::new(workspace_binary("palisade-demo").unwrap());
    let output = draw.arg("draw").arg(recording).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The words in a picture.
fn labels(picture: &str) -> Vec<String> {
    let texts = picture.split("<text").skip(1);
    let words = texts.map(|text| text.split_once('>').unwrap().1.split_once('<').unwrap().0);
    words.map(|label| label.trim().to_owned()).collect()
}

/// After a change of the drawing code this picture has to be drawn again. CONTRIBUTING has the
/// command.
/// Catches: a picture of the README that is not what the program draws.
#[test]
fn the_picture_of_the_readme_is_drawn_from_its_record() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("docs");
    let picture = std::fs::read_to_string(docs.join("pause.svg")).unwrap();
    let redrawn = drawn(&docs.join("pause.json"));
    assert!(
        picture == redrawn,
        "docs/pause.svg is not what `draw docs/pause.json` prints"
    );
}

/// Catches: a way for a page to say which process is killed.
#[tokio::test]
async fn a_visitor_kills_client_1_and_no_other_process() {
    let gateway = Gateway::start().await;
    let settings = json!({ "ttl_ms": 1500, "pause_ms": 0, "by_hand": true });
    play(&gateway, settings).await;
    view_when(&gateway, client_1_is("running")).await;
    cue(&gateway, "pause").await;
    let view = view_when(&gateway, client_1_is("stopped")).await;
    let pids: Vec<_> = view["acts"].as_array().unwrap().iter().map(pid).collect();
    // A cue is one word, so a page cannot name a process.
    for whom in [json!({ "kill": 1 }), json!(["kill", 1]), json!("kill 1")] {
        let request = gateway.request(Method::POST, "/live/cue").json(&whom);
        assert!(send(request).await.status.is_client_error(), "{whom}");
    }
    cue(&gateway, "kill").await;
    let view = view_when(&gateway, is_over).await;
    for act in view["acts"].as_array().unwrap() {
        assert_eq!(act["verdict"]["good"], true, "{view:#}");
        assert_eq!(act["client_1"], "gone", "{view:#}");
    }
    for pid in pids {
        let state = e2e::signal::state(pid);
        assert!(state.is_none_or(|state| state == 'Z'), "{pid:?} lives on");
    }
    // There is no process any more that could be killed.
    cue(&gateway, "kill").await;
    assert_eq!(
        send(gateway.request(Method::GET, "/healthz")).await.status,
        200
    );
}

/// Catches: a page of another origin that starts processes on the machine of its visitor.
#[tokio::test]
async fn a_page_of_another_origin_can_start_nothing() {
    let gateway = Gateway::start().await;
    let settings = json!({ "ttl_ms": 500, "pause_ms": 900 });
    let run = || gateway.request(Method::POST, "/live/run").json(&settings);
    let told = |cue: &str| gateway.request(Method::POST, "/live/cue").json(&json!(cue));
    let actions = || {
        let cues = ["pause", "resume", "kill"].map(told);
        std::iter::once(run()).chain(cues)
    };
    for action in actions() {
        let cross_site = action.header("sec-fetch-site", "cross-site");
        assert_eq!(send(cross_site).await.status, 403);
    }
    for action in actions() {
        let other_origin = action.header(header::ORIGIN, "http://evil.example");
        assert_eq!(send(other_origin).await.status, 403);
    }
    // A foreign name that leads to this address would give a foreign page the same origin.
    for action in actions() {
        let rebound = action.header(header::HOST, "evil.example");
        send(rebound).await.assert_problem(421, "misdirected");
    }
    let view = send(gateway.request(Method::GET, "/live/run")).await.body;
    assert_eq!(view["run"], 0, "{view}");
}

#[tokio::test]
async fn under_a_name_that_is_not_ours_nothing_can_be_seen_either() {
    let gateway = Gateway::start().await;
    for path in [
        "/",
        "/live/page.js",
        "/live/run",
        "/live/wire/0",
        "/live/changes",
        "/live/recording.json",
        "/live/picture/fenced",
    ] {
        let rebound = gateway
            .request(Method::GET, path)
            .header(header::HOST, "evil.example");
        send(rebound).await.assert_problem(421, "misdirected");
    }
}

#[tokio::test]
async fn a_request_that_the_page_never_sends_is_a_mistake_of_the_client() {
    let gateway = Gateway::start().await;
    let request = |path: &str| gateway.request(Method::GET, path);
    for path in [
        "/live/picture/other",
        "/live/picture/%ff",
        "/live/picture/fenced?until_ms=-1",
        "/live/picture/fenced?until_ms=18446744073709551616",
        "/live/picture/fenced?alone=perhaps",
        "/live/wire/-1",
        "/live/wire/x",
        "/live/wire/99999999999999999999",
        "/live/page.js/",
    ] {
        send(request(path)).await.assert_any_problem();
    }
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    for path in ["/live/run", "/live/cue"] {
        let too_long = "{\"ttl_ms\":10001,\"pause_ms\":0}";
        let other = "{\"story\":\"other\"}";
        for body in ["", "{", "7", "\"faint\"", other, too_long, &deep] {
            let request = gateway.request(Method::POST, path);
            let request = request.header(header::CONTENT_TYPE, "application/json");
            send(request.body(body.to_owned()))
                .await
                .assert_any_problem();
        }
        let plain = gateway.request(Method::POST, path).body("\"pause\"");
        send(plain)
            .await
            .assert_problem(415, "media-type-unsupported");
    }
    let view = send(request("/live/run")).await.body;
    assert_eq!(view["run"], 0, "{view}");
}

/// The gateway does not wait for a body that never ends, for this page or any other.
#[tokio::test]
async fn half_a_request_to_the_page_is_given_up() {
    let gateway = Gateway::start_with_silence("15s", &["--request-timeout", "3s"]).await;
    let head = "POST /live/run HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let mut stream = TcpStream::connect(gateway.addr()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
    read.expect("it is waited for").unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    let view = send(gateway.request(Method::GET, "/live/run")).await.body;
    assert_eq!(view["run"], 0, "{view}");
}

/// Catches: an end that waits for a stream of events, or leaves a stopped process behind.
#[tokio::test]
async fn the_gateway_ends_although_a_page_listens_and_a_client_is_stopped() {
    let signals = [(Signal::TERM, Some(0)), (Signal::KILL, None)];
    for (signal, code) in signals {
        ends_by(signal, code).await;
    }
}

async fn ends_by(signal: Signal, code: Option<i32>) {
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
    kill_process(gateway.process.id(), signal).unwrap();
    while let Ok(Some(_)) = changes.chunk().await {}
    let ended = timeout(PATIENCE, gateway.process.finish()).await.unwrap();
    assert_eq!(ended.code(), code);
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
