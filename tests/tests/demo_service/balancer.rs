//! One address in front of several gateways: every request goes to the next one.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use tokio::{net::TcpListener, task::JoinSet};

/// Which gateway has answered, by its number.
pub(crate) const ANSWERED_BY: HeaderName = HeaderName::from_static("answered-by");

/// The headers that are for two neighbours only.
const HOP_BY_HOP: [HeaderName; 4] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::HOST,
    header::TRANSFER_ENCODING,
];

pub(crate) struct Balancer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

struct Shared {
    gateways: Mutex<Vec<String>>,
    next: AtomicUsize,
    http: reqwest::Client,
}

impl Balancer {
    pub(crate) async fn start(gateways: Vec<String>) -> Self {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let shared = Arc::new(Shared {
            gateways: Mutex::new(gateways),
            next: AtomicUsize::new(0),
            http,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .fallback(pass_on)
            .with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            shared,
            _serving: serving,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Another gateway takes the place of this one.
    pub(crate) fn replace(&self, number: usize, url: &str) {
        self.shared.gateways.lock().unwrap()[number] = url.to_owned();
    }
}

/// Answers 502 if the gateway whose turn it is does not answer. It is then unknown whether the
/// gateway has executed the request, so the client has to send it again.
async fn pass_on(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let turn = shared.next.fetch_add(1, Ordering::Relaxed);
    let (number, gateway) = {
        let gateways = shared.gateways.lock().unwrap();
        let number = turn % gateways.len();
        (number, gateways[number].clone())
    };
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, 1 << 20).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let url = format!("{gateway}{}", parts.uri);
    let mut headers = parts.headers;
    HOP_BY_HOP
        .iter()
        .for_each(|name| drop(headers.remove(name)));
    let onward = shared.http.request(parts.method, url).headers(headers);
    let Ok(answer) = onward.body(body).send().await else {
        return StatusCode::BAD_GATEWAY.into_response();
    };
    let mut response = Response::builder().status(answer.status());
    let passed = answer.headers().iter();
    for (name, value) in passed.filter(|(name, _)| !HOP_BY_HOP.contains(name)) {
        response = response.header(name, value);
    }
    match answer.bytes().await {
        Ok(body) => response
            .header(ANSWERED_BY, number)
            .body(Body::from(body))
            .unwrap(),
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}
