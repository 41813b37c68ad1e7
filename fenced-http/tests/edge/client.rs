//! The client's side: its requests, and the way in which it reads each answer.

use std::time::Duration;

use axum::{Router, routing::any};
use bytes::Bytes;
use fenced_http::{
    FENCING_ACCEPTED, FENCING_TOKEN, Fenced, Problem, ProblemType, Unsigned,
    client::{Advice, Credential, Refusal, Sender, WriteError},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::LOCATION};
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::timeout,
};

const HOLDER: &str = "9b6c5f0e2d4a4c1f8e7d6c5b4a392817";

fn credential() -> Credential {
    let sequencer = Sequencer::new(
        Issuer::new("redis").unwrap(),
        ResourceName::new("account:42").unwrap(),
        FencingToken::new(34).unwrap(),
        HOLDER.parse::<Holder>().unwrap(),
    );
    Credential::new(&sequencer).unwrap()
}

fn accepted(values: &[&str]) -> HeaderMap {
    let values = values
        .iter()
        .map(|value| (FENCING_ACCEPTED.clone(), value.parse().unwrap()));
    values.collect()
}

#[test]
fn only_its_own_token_once_is_an_acceptance() {
    let credential = credential();
    assert!(credential.is_accepted(&accepted(&["34"])));
    for not in [
        &[][..],
        &["33"],
        &["35"],
        &["34", "34"],
        &["034"],
        &["34, 34"],
        &[""],
    ] {
        assert!(!credential.is_accepted(&accepted(not)), "{not:?}");
    }
}

fn refusal(problem: &Problem) -> Refusal {
    let (parts, body) = problem.to_response::<Bytes>().into_parts();
    Refusal::new(parts.status, &parts.headers, &body)
}

/// The advice of docs/errors.md.
#[test]
fn every_kind_of_problem_has_its_advice() {
    let later = Duration::from_secs(3);
    for &kind in ProblemType::ALL {
        let problem = Problem::new(kind).retry_after(later);
        let refusal = refusal(&problem);
        assert_eq!(refusal.kind(), Some(kind));
        assert_eq!(refusal.status(), kind.status());
        let expected = match kind.slug() {
            "fencing-token-stale" | "fencing-mark-lost" | "fencing-token-holder-conflict" => {
                Advice::AcquireAgain
            }
            "fencing-token-not-claimed" => Advice::ClaimFirst,
            "store-unavailable" => Advice::Retry { after: Some(later) },
            "outcome-unknown" => Advice::ReadFirst,
            "fencing-token-required"
            | "fencing-token-malformed"
            | "fencing-token-not-accepted"
            | "fencing-token-wrong-resource"
            | "fencing-token-wrong-issuer"
            | "fencing-token-implausible"
            | "fencing-service-fault" => Advice::GiveUp,
            slug => panic!("add the advice for {slug} here"),
        };
        assert_eq!(refusal.advice(), expected, "{}", kind.slug());
    }
}

/// Catches: a retry of a write that may have been made.
#[test]
fn an_answer_of_a_foreign_service_is_judged_by_its_status() {
    for (status, body, advice) in [
        (502, "<html>Bad Gateway", Advice::ReadFirst),
        (500, "{\"type\":\"about:blank\"}", Advice::ReadFirst),
        (503, "", Advice::ReadFirst),
        (429, "[]", Advice::Retry { after: None }),
        (302, "", Advice::GiveUp),
        (404, "{\"type\":7}", Advice::GiveUp),
        (
            412,
            "{\"type\":\"urn:palisade:problem:of-another-service\"}",
            Advice::GiveUp,
        ),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        let refusal = Refusal::new(status, &HeaderMap::new(), body.as_bytes());
        assert_eq!(refusal.kind(), None);
        assert_eq!(refusal.advice(), advice, "{status} {body}");
    }
}

/// Catches: an error text without the reason.
#[test]
fn a_refusal_says_what_the_service_said() {
    let problem = Problem::new(ProblemType::TOKEN_STALE)
        .detail("acquire the lock again")
        .with("token", 33);
    let mut response = problem.to_response::<Bytes>();
    let mark = HeaderValue::from_static("34");
    response.headers_mut().insert("fencing-high-water", mark);
    let (parts, body) = response.into_parts();
    let refusal = Refusal::new(parts.status, &parts.headers, &body);
    assert_eq!(refusal.high_water(), FencingToken::new(34).ok());
    assert_eq!(refusal.member("token"), Some(&33.into()));
    assert_eq!(
        refusal.to_string(),
        "refused with 412 Precondition Failed: urn:palisade:problem:fencing-token-stale: \
         acquire the lock again"
    );
}

/// The address of a host, and the requests that follow a redirect to it.
async fn another_host() -> (String, mpsc::UnboundedReceiver<HeaderMap>) {
    let (told, asked) = mpsc::unbounded_channel();
    let answer = async move |headers: HeaderMap| {
        told.send(headers).unwrap();
        ([(FENCING_ACCEPTED.clone(), "34")], "written")
    };
    (serve(Router::new().fallback(answer)).await, asked)
}

#[allow(clippy::disallowed_methods, reason = "it ends with the runtime")]
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, router).into_future());
    format!("http://{addr}/")
}

/// Catches: a secret that follows a redirect.
#[tokio::test]
async fn a_redirect_takes_no_token_to_another_host_and_makes_no_write() {
    let (elsewhere, mut asked) = another_host().await;
    let sender = Sender::new(reqwest::Client::builder().no_proxy()).unwrap();
    let another = reqwest::Client::builder().no_proxy().build().unwrap();
    for status in [301, 302, 303, 307, 308] {
        let status = StatusCode::from_u16(status).unwrap();
        let redirect = (status, [(LOCATION, elsewhere.clone())]);
        let url = serve(Router::new().route("/", any(redirect))).await;
        // The sender that sends a request decides, not the one that has begun it.
        for request in [sender.request(Method::PUT, &url), another.put(&url)] {
            let error = sender.send(request, &credential()).await.unwrap_err();
            let told = matches!(&error, WriteError::Refused(answer) if answer.status() == status);
            assert!(told, "{error:?}");
            assert!(asked.try_recv().is_err(), "{status} was followed");
        }
        // The control: by default reqwest follows the redirect.
        let request = another.put(&url);
        let request = request.header(&FENCING_TOKEN, credential().value());
        assert!(request.send().await.unwrap().status().is_success());
        assert_eq!(
            asked.try_recv().unwrap()[&FENCING_TOKEN],
            credential().value()
        );
    }
}

/// Refuses one request, with a body of which only the beginning is sent.
async fn refuse(server: &TcpListener, beginning: &[u8]) -> TcpStream {
    let (mut stream, _) = server.accept().await.unwrap();
    let _asked = stream.read(&mut [0; 4096]).await.unwrap();
    let head = b"HTTP/1.1 412 Precondition Failed\r\ncontent-length: 999999999999\r\n\r\n";
    stream.write_all(head).await.unwrap();
    stream.write_all(beginning).await.unwrap();
    stream
}

/// The refusal that a sender reads from this server.
async fn refusal_by(server: &TcpListener) -> Refusal {
    let url = format!("http://{}/", server.local_addr().unwrap());
    let sender = Sender::new(reqwest::Client::builder().no_proxy()).unwrap();
    let (request, credential) = (sender.request(Method::PUT, url), credential());
    let answer = timeout(Duration::from_secs(20), sender.send(request, &credential)).await;
    match answer.expect("the sender has the status and still waits") {
        Err(WriteError::Refused(refusal)) => refusal,
        answer => panic!("{answer:?}"),
    }
}

/// A client that waits for the rest of the body would not learn that its lease is lost.
#[tokio::test]
async fn a_refusal_whose_body_stalls_is_returned_with_the_part_that_has_arrived() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let problem = Problem::new(ProblemType::TOKEN_STALE).to_response::<Bytes>();
    let refusing = refuse(&server, problem.body());
    let (refusal, _still_open) = tokio::join!(refusal_by(&server), refusing);
    assert_eq!(refusal.status(), StatusCode::PRECONDITION_FAILED);
    assert_eq!(refusal.advice(), Advice::AcquireAgain);
}

#[tokio::test]
async fn a_refusal_whose_body_never_ends_is_not_read_to_the_end() {
    const ENOUGH: usize = 256 << 20;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refusing = async {
        let mut stream = refuse(&server, b"").await;
        let mut sent = 0;
        while sent < ENOUGH
            && let Ok(more) = stream.write(&[b' '; 1 << 16]).await
        {
            sent += more;
        }
        (sent, stream)
    };
    let (refusal, (sent, _still_open)) = tokio::join!(refusal_by(&server), refusing);
    assert_eq!(refusal.status(), StatusCode::PRECONDITION_FAILED);
    // The part that was read, and the part that the two sockets hold.
    assert!(sent < ENOUGH / 4, "{sent} bytes");
}

/// Catches: a token in a message that is not checked as a token in a header is.
#[test]
fn a_token_travels_as_text_and_is_checked_on_arrival() {
    let credential = credential();
    let text = credential.expose();
    assert_eq!(
        text.parse::<Credential>().unwrap().token(),
        credential.token()
    );
    let by = |issuer: &str| Unsigned::new(Issuer::new(issuer).unwrap());
    let fenced = Fenced::from_text(text, &by("redis")).unwrap();
    assert_eq!(fenced.token(), credential.token());
    let refused = [
        Fenced::from_text(text, &by("etcd")).unwrap_err(),
        Fenced::from_text("34", &by("redis")).unwrap_err(),
    ];
    let kinds = refused.map(|rejection| rejection.problem_type());
    assert_eq!(
        kinds,
        [ProblemType::WRONG_ISSUER, ProblemType::TOKEN_MALFORMED]
    );
    assert!(!format!("{credential:?}").contains(HOLDER));
}
