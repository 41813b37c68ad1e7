//! A service that keeps its values in Redis, behind the layer that checks the header.

use axum::{
    Router,
    extract::State,
    http::{Method, StatusCode},
    routing::put,
};
use e2e::servers::Redis;
use fenced_store::{
    FenceError, Receipt,
    http::{FENCING_TOKEN, Fenced, FencingHeader, FencingLayer, Scope, Unsigned},
};
use lock_core::{Issuer, Sequencer};
use reqwest::{Client, Response};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinSet};

use crate::redis::{FencedRedis, Store, connection, fresh, grant, value};

/// On a port of its own, until it is dropped.
struct Service {
    url: String,
    _server: JoinSet<()>,
}

impl Service {
    async fn start(store: Store) -> Self {
        let fencing = FencingLayer::required(Unsigned::new(Issuer::new("redis").unwrap()))
            .resource(Scope::path("/carts/", ""))
            .methods([Method::GET, Method::PUT]);
        let router = Router::new()
            .route(
                "/carts/{resource}",
                put(write).get(read).route_layer(fencing),
            )
            .with_state(store);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/carts/account:42", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            _server: server,
        }
    }

    /// The number of a write that is sent by PUT; without one the value is read.
    async fn send(&self, sequencer: &Sequencer, write: Option<(u64, &'static str)>) -> Response {
        let header = FencingHeader::new(sequencer);
        let client = Client::new();
        let request = match write {
            Some((seq, value)) => client
                .put(&self.url)
                .header(&FENCING_TOKEN, header.seq(seq).unwrap())
                .body(value),
            None => client.get(&self.url).header(&FENCING_TOKEN, header),
        };
        request.send().await.unwrap()
    }
}

async fn write(
    fenced: Fenced,
    State(store): State<Store>,
    value: String,
) -> Result<(Receipt, StatusCode), FenceError> {
    let receipt = store.set(&fenced, value, None).await?;
    Ok((receipt, StatusCode::NO_CONTENT))
}

async fn read(fenced: Fenced, State(store): State<Store>) -> Result<Vec<u8>, FenceError> {
    Ok(store.get(&fenced).await?.unwrap_or_default())
}

async fn problem(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    (status, response.json().await.unwrap())
}

/// A request that a client or a proxy sends twice is a write that is made once, and one that was
/// overtaken is not made at all.
#[tokio::test]
async fn a_numbered_write_to_redis_is_made_once_and_in_order() {
    let store = fresh().await;
    let (ours, next) = (grant(33), grant(34));
    store.claim(&ours).await.unwrap();
    let service = Service::start(store.clone()).await;

    assert_eq!(service.send(&ours, Some((2, "b"))).await.status(), 204);
    for seq in [1, 2] {
        let (status, problem) = problem(service.send(&ours, Some((seq, "late"))).await).await;
        assert_eq!(status, 412, "{problem}");
        assert_eq!(
            problem["type"],
            "urn:palisade:problem:fencing-sequence-stale"
        );
        assert_eq!(problem["last_seq"], 2);
    }
    assert_eq!(value(&store).await.unwrap(), "b");
    assert_eq!(service.send(&ours, None).await.text().await.unwrap(), "b");
    assert_eq!(service.send(&ours, Some((3, "c"))).await.status(), 204);

    store.claim(&next).await.unwrap();
    let again = service.send(&next, Some((1, "d"))).await;
    assert_eq!(again.status(), 204, "each grant counts from the start");
    store.claim(&next).await.unwrap();
    let late = service.send(&next, Some((1, "e"))).await;
    assert_eq!(late.status(), 412, "to claim again is not to start again");
    assert_eq!(value(&store).await.unwrap(), "d");
}

#[tokio::test]
async fn a_redis_that_is_down_is_unavailable_and_no_fault_of_the_service() {
    let server = Redis::start().await;
    let store = FencedRedis::new(connection(server.url()).await);
    let ours = grant(33);
    store.claim(&ours).await.unwrap();
    let service = Service::start(store).await;
    server.kill().await;

    let (status, read) = problem(service.send(&ours, None).await).await;
    assert_eq!(status, 503, "{read}");
    let (status, written) = problem(service.send(&ours, Some((1, "a"))).await).await;
    assert_eq!(status, 504, "{written}");
    assert_eq!(written["outcome"], "unknown");
}
