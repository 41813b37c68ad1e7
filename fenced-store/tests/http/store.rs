//! From the header to the row and back: an axum router over a SQLite store.

use axum::{
    Router,
    body::Body,
    extract::State,
    response::IntoResponse,
    routing::{get, post, put},
};
use fenced_http::{
    FENCING_ACCEPTED, FENCING_HIGH_WATER, FENCING_TOKEN, Fenced, FencingHeader, FencingLayer,
    Scope, Unsigned,
};
use fenced_store::{FenceError, Receipt, SqliteFencedStore};
use http::{HeaderName, Method, Request, Response, StatusCode, header::CACHE_CONTROL};
use http_body_util::BodyExt;
use lock_core::{Issuer, ResourceName, Sequencer};
use tempfile::TempDir;
use tower::ServiceExt;

use crate::accounts::{self, sequencer};

struct Service {
    router: Router,
    store: SqliteFencedStore,
    _dir: TempDir,
}

impl Service {
    /// A service with one account, whose balance is 0.
    async fn start() -> Self {
        let (store, dir) = accounts::store().await;

        let verifier = Unsigned::new(Issuer::new("redis").unwrap());
        let fencing = FencingLayer::required(verifier, Scope::path("/accounts/", "account:"));
        let account = put(deposit)
            .post(touch)
            .patch(ignore_the_token)
            .route_layer(fencing.clone());
        let reads = fencing.clone().methods([Method::GET]);
        let router = Router::new()
            .route("/accounts/{id}", account)
            .route("/accounts/{id}/read", get(read).route_layer(reads))
            .route("/accounts/{id}/break", post(broken).route_layer(fencing))
            .with_state(store.clone());
        Self {
            router,
            store,
            _dir: dir,
        }
    }

    /// The same service, and a claimed grant of the account.
    async fn claimed() -> (Self, Sequencer) {
        let (service, sequencer) = (Self::start().await, sequencer(33));
        service.store.claim(&sequencer).await.unwrap();
        (service, sequencer)
    }

    async fn send(&self, method: &str, path: &str, sequencer: &Sequencer) -> Response<Body> {
        self.send_with(method, path, FencingHeader::new(sequencer))
            .await
    }

    async fn send_with(
        &self,
        method: &str,
        path: &str,
        header: FencingHeader<'_>,
    ) -> Response<Body> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(&FENCING_TOKEN, header)
            .body(Body::empty())
            .unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn balance(&self) -> i64 {
        let query = "SELECT balance FROM accounts WHERE name = 'account:42'";
        sqlx::query_scalar(query)
            .fetch_one(self.store.pool())
            .await
            .unwrap()
    }
}

type Store = State<SqliteFencedStore>;

const DEPOSIT: &str = "UPDATE accounts SET balance = balance + 10 WHERE name = $1";

async fn deposit(State(store): Store, fenced: Fenced) -> Result<(Receipt, StatusCode), FenceError> {
    let mut tx = store.begin(&fenced).await?;
    let name = fenced.resource().as_str();
    sqlx::query(DEPOSIT).bind(name).execute(&mut *tx).await?;
    Ok((tx.commit().await?, StatusCode::NO_CONTENT))
}

async fn touch(State(store): Store, fenced: Fenced) -> Result<Receipt, FenceError> {
    store.begin(&fenced).await?.commit().await
}

/// A handler whose answer says that a cache may keep it.
async fn read(
    State(store): Store,
    fenced: Fenced,
) -> Result<(Receipt, [(HeaderName, &'static str); 1]), FenceError> {
    let receipt = store.begin(&fenced).await?.commit().await?;
    Ok((receipt, [(CACHE_CONTROL, "max-age=60")]))
}

/// A mistake of a programmer: the layer is there, but the write is not fenced. The handler sets the
/// acceptance nevertheless.
async fn ignore_the_token(
    State(store): Store,
) -> Result<(StatusCode, [(HeaderName, &'static str); 1]), FenceError> {
    sqlx::query(DEPOSIT)
        .bind("account:42")
        .execute(store.pool())
        .await?;
    let forged = [(FENCING_ACCEPTED.clone(), "33")];
    Ok((StatusCode::NO_CONTENT, forged))
}

async fn broken(State(store): Store, fenced: Fenced) -> Result<Receipt, FenceError> {
    let mut tx = store.begin(&fenced).await?;
    sqlx::query(DEPOSIT)
        .bind("account:42")
        .execute(&mut *tx)
        .await?;
    sqlx::query("INSERT INTO accounts VALUES ('account:42', 1)")
        .execute(&mut *tx)
        .await?;
    tx.commit().await
}

fn accepted(response: &Response<Body>) -> Option<&str> {
    let value = response.headers().get(&FENCING_ACCEPTED)?;
    Some(value.to_str().unwrap())
}

async fn slug(response: Response<Body>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
    problem["type"]
        .as_str()
        .unwrap()
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_stale_holder_gets_412_and_the_row_stays_as_it_was() {
    let service = Service::start().await;
    let (older, newer) = (sequencer(33), sequencer(34));
    service.store.claim(&older).await.unwrap();
    let response = service.send("PUT", "/accounts/42", &older).await;
    assert_eq!(response.status(), StatusCode::NO_CONTENT);
    assert_eq!(accepted(&response), Some("33"));
    assert_eq!(service.balance().await, 10);

    service.store.claim(&newer).await.unwrap();
    let response = service.send("PUT", "/accounts/42", &older).await;
    assert_eq!(response.status(), StatusCode::PRECONDITION_FAILED);
    assert_eq!(accepted(&response), None);
    assert_eq!(response.headers()[&FENCING_HIGH_WATER], "34");
    assert_eq!(slug(response).await, "fencing-token-stale");
    assert_eq!(service.balance().await, 10);

    let response = service.send("PUT", "/accounts/42", &newer).await;
    assert_eq!(accepted(&response), Some("34"));
    assert_eq!(service.balance().await, 20);
}

#[tokio::test]
async fn only_a_receipt_sets_fencing_accepted() {
    let (service, sequencer) = Service::claimed().await;
    let response = service.send("POST", "/accounts/42", &sequencer).await;
    assert_eq!(
        (response.status(), accepted(&response)),
        (StatusCode::OK, Some("33"))
    );
    let response = service.send("PATCH", "/accounts/42", &sequencer).await;
    assert_eq!(
        (response.status(), accepted(&response)),
        (StatusCode::NO_CONTENT, None)
    );
    assert_eq!(
        service.balance().await,
        10,
        "it was written, and the client can tell: not fenced"
    );
}

/// A cache that repeats an acceptance would say "accepted" without a check by the store.
#[tokio::test]
async fn an_acceptance_is_for_no_cache() {
    let (service, sequencer) = Service::claimed().await;
    for (method, path) in [("GET", "/accounts/42/read"), ("PUT", "/accounts/42")] {
        let response = service.send(method, path, &sequencer).await;
        assert_eq!(accepted(&response), Some("33"), "{method}");
        let told: Vec<_> = response.headers().get_all(CACHE_CONTROL).iter().collect();
        assert_eq!(told, ["no-store"], "{method}");
    }
    // The same holds without a layer.
    let tx = service.store.begin(&sequencer).await.unwrap();
    let receipt = tx.commit().await.unwrap();
    let mut response = Response::new(());
    receipt.set_accepted(&mut response);
    assert_eq!(response.headers()[CACHE_CONTROL], "no-store");
    assert_eq!(receipt.into_response().headers()[CACHE_CONTROL], "no-store");
}

#[tokio::test]
async fn the_edge_enters_and_never_claims() {
    let service = Service::start().await;
    let response = service.send("PUT", "/accounts/42", &sequencer(33)).await;
    assert_eq!(response.status(), StatusCode::PRECONDITION_FAILED);
    assert_eq!(slug(response).await, "fencing-token-not-claimed");
    assert_eq!(service.balance().await, 0);
    let resource = ResourceName::new("account:42").unwrap();
    assert!(service.store.high_water(&resource).await.unwrap().is_none());
}

#[tokio::test]
async fn another_holder_with_the_same_token_gets_409() {
    let service = Service::start().await;
    service.store.claim(&sequencer(33)).await.unwrap();
    let response = service.send("PUT", "/accounts/42", &sequencer(33)).await;
    assert_eq!(response.status(), StatusCode::CONFLICT);
    assert_eq!(slug(response).await, "fencing-token-holder-conflict");
    assert_eq!(service.balance().await, 0);
}

/// Clocks differ, so the end of the lease is only advice: the claim of the next holder shuts the
/// token out.
#[tokio::test]
async fn a_token_whose_lease_has_ended_is_good_until_the_next_claim() {
    let service = Service::start().await;
    let (ended, next) = (sequencer(33), sequencer(34));
    service.store.claim(&ended).await.unwrap();
    let in_1970 = FencingHeader::new(&ended).expires_at(1).unwrap();
    let response = service.send_with("PUT", "/accounts/42", in_1970).await;
    assert_eq!(accepted(&response), Some("33"));
    service.store.claim(&next).await.unwrap();
    let response = service.send_with("PUT", "/accounts/42", in_1970).await;
    assert_eq!(slug(response).await, "fencing-token-stale");
    assert_eq!(service.balance().await, 10);
}

#[tokio::test]
async fn a_broken_statement_is_a_fault_of_the_service_and_writes_nothing() {
    let (service, sequencer) = Service::claimed().await;
    let response = service.send("POST", "/accounts/42/break", &sequencer).await;
    assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(accepted(&response), None);
    assert_eq!(slug(response).await, "fencing-service-fault");
    assert_eq!(service.balance().await, 0);
}

#[tokio::test]
async fn a_store_that_is_down_fails_closed() {
    let (service, sequencer) = Service::claimed().await;
    service.store.pool().close().await;
    let response = service.send("PUT", "/accounts/42", &sequencer).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(slug(response).await, "store-unavailable");
}
