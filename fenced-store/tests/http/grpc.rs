//! Fencing over gRPC: the same token, as metadata. This file is an example, too: service and client
//! are written by hand, so no `protoc` is needed.

use std::{
    convert::Infallible,
    future::ready,
    task::{Context, Poll},
};

use fenced_http::{
    FENCING_ACCEPTED, FENCING_TOKEN, Fenced, FencingHeader, Problem, ProblemType, Rejection,
    client::Credential,
    signed::{Audience, KeyRing, Secret, SigningKey},
};
use fenced_store::{FenceError, SqliteFencedStore};
use lock_core::{ResourceName, Sequencer};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinSet};
use tonic::{
    Code, Request, Response, Status,
    body::Body,
    codegen::BoxFuture,
    metadata::AsciiMetadataValue,
    server::{Grpc, NamedService},
    transport::{Channel, Endpoint, Server, server::TcpIncoming},
};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::accounts::{self, sequencer};

/// `message Deposit { string account = 1; int64 amount = 2; }`
#[derive(Clone, PartialEq, prost::Message)]
struct Deposit {
    #[prost(string, tag = "1")]
    account: String,
    #[prost(int64, tag = "2")]
    amount: i64,
}

/// `message Balance { int64 balance = 1; }`
#[derive(Clone, PartialEq, prost::Message)]
struct Balance {
    #[prost(int64, tag = "1")]
    balance: i64,
}

/// `service Accounts { rpc Deposit(Deposit) returns (Balance); }`
#[derive(Clone)]
struct Accounts {
    store: SqliteFencedStore,
    ring: KeyRing,
}

const DEPOSIT: &str = "/bank.Accounts/Deposit";

impl Accounts {
    /// The handler. It does the work of the HTTP layer itself, because the answers have to be
    /// statuses of gRPC.
    async fn deposit(self, request: Request<Deposit>) -> Result<Response<Balance>, Status> {
        let fenced = Fenced::from_headers(request.metadata().as_ref(), &self.ring)
            .and_then(|fenced| fenced.ok_or(Rejection::Missing))
            .map_err(|rejection| status(rejection.problem_type(), &rejection.to_string()))?;
        let Deposit { account, amount } = request.into_inner();
        let resource = ResourceName::new(format!("account:{account}"))
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        fenced
            .must_be_about(&resource)
            .map_err(|rejection| status(rejection.problem_type(), &rejection.to_string()))?;
        let written = self.write(&fenced, amount).await;
        written.map_err(|error| status(Problem::from(&error).kind(), &error.to_string()))
    }

    async fn write(self, fenced: &Fenced, amount: i64) -> Result<Response<Balance>, FenceError> {
        let mut tx = self.store.begin(fenced).await?;
        let update = "UPDATE accounts SET balance = balance + $1 WHERE name = $2 RETURNING balance";
        let balance = sqlx::query_scalar(update)
            .bind(amount)
            .bind(fenced.resource().as_str())
            .fetch_one(&mut *tx)
            .await?;
        let receipt = tx.commit().await?;
        let mut response = Response::new(Balance { balance });
        let metadata = response.metadata_mut();
        metadata.insert(FENCING_ACCEPTED.as_str(), receipt.token().get().into());
        Ok(response)
    }
}

/// The status of gRPC with the same meaning as the problem, and with the name of the problem as
/// metadata.
fn status(kind: ProblemType, words: &str) -> Status {
    let code = match kind.status().as_u16() {
        400 => Code::InvalidArgument,
        403 => Code::PermissionDenied,
        409 | 412 | 428 => Code::FailedPrecondition,
        503 => Code::Unavailable,
        504 => Code::Unknown,
        _ => Code::Internal,
    };
    let mut status = Status::new(code, words);
    if let Ok(kind) = AsciiMetadataValue::try_from(kind.uri()) {
        status.metadata_mut().insert("problem-type", kind);
    }
    status
}

impl NamedService for Accounts {
    const NAME: &'static str = "bank.Accounts";
}

/// The code that `protoc` would have written.
impl Service<http::Request<Body>> for Accounts {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != DEPOSIT {
            return Box::pin(ready(Ok(
                Status::unimplemented("no such method").into_http()
            )));
        }
        let accounts = self.clone();
        let deposit = tower::service_fn(move |request| accounts.clone().deposit(request));
        Box::pin(async move {
            let mut grpc = Grpc::new(ProstCodec::<Balance, Deposit>::default());
            Ok(grpc.unary(deposit, request).await)
        })
    }
}

/// A server on a free port, with its store and its lock service.
struct World {
    store: SqliteFencedStore,
    ring: KeyRing,
    channel: Channel,
    _server: JoinSet<Result<(), tonic::transport::Error>>,
    _dir: TempDir,
}

impl World {
    async fn start() -> Self {
        let (store, dir) = accounts::store().await;
        let audience = Audience::new("accounts").unwrap();
        let key = SigningKey::new("k2", &Secret::random(), audience).unwrap();
        let ring = KeyRing::new([key]).unwrap();

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let accounts = Accounts {
            store: store.clone(),
            ring: ring.clone(),
        };
        let serving = Server::builder()
            .add_service(accounts)
            .serve_with_incoming(TcpIncoming::from(listener));
        let mut server = JoinSet::new();
        server.spawn(serving);
        let endpoint = Endpoint::from_shared(format!("http://{addr}")).unwrap();
        Self {
            store,
            ring,
            channel: endpoint.connect().await.unwrap(),
            _server: server,
            _dir: dir,
        }
    }

    /// The credential that a gateway would hand out.
    fn credential(&self, sequencer: &Sequencer) -> Credential {
        let key = self.ring.signing_key();
        Credential::of(key.sign(FencingHeader::new(sequencer))).unwrap()
    }

    /// The client: it sends the token as metadata, and accepts an answer only with an acceptance.
    async fn deposit(
        &self,
        account: &str,
        credential: Option<&Credential>,
    ) -> Result<(i64, bool), Status> {
        let mut request = Request::new(Deposit {
            account: account.to_owned(),
            amount: 10,
        });
        if let Some(credential) = credential {
            let mut value = AsciiMetadataValue::try_from(credential.value().as_bytes()).unwrap();
            value.set_sensitive(true);
            request.metadata_mut().insert(FENCING_TOKEN.as_str(), value);
        }
        let mut grpc = tonic::client::Grpc::new(self.channel.clone());
        grpc.ready().await.unwrap();
        let codec = ProstCodec::<Deposit, Balance>::default();
        let path = http::uri::PathAndQuery::from_static(DEPOSIT);
        let response = grpc.unary(request, path, codec).await?;
        let fenced = credential.is_some_and(|it| it.is_accepted(response.metadata().as_ref()));
        Ok((response.into_inner().balance, fenced))
    }
}

#[track_caller]
fn assert_refused(answer: Result<(i64, bool), Status>, code: Code, problem: &str) {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    let kind = status.metadata().get("problem-type").unwrap();
    assert_eq!(
        kind.to_str().unwrap(),
        format!("urn:palisade:problem:{problem}")
    );
}

#[tokio::test]
async fn a_stale_holder_is_refused_over_grpc_too() {
    let world = World::start().await;
    let (older, newer) = (sequencer(33), sequencer(34));
    let (paused, current) = (world.credential(&older), world.credential(&newer));
    world.store.claim(&older).await.unwrap();
    assert_eq!(
        world.deposit("42", Some(&paused)).await.unwrap(),
        (10, true)
    );

    world.store.claim(&newer).await.unwrap();
    let late = world.deposit("42", Some(&paused)).await;
    assert_refused(late, Code::FailedPrecondition, "fencing-token-stale");
    assert_eq!(
        world.deposit("42", Some(&current)).await.unwrap(),
        (20, true)
    );
}

#[tokio::test]
async fn a_bad_token_is_refused_over_grpc_too() {
    let world = World::start().await;
    let sequencer = sequencer(33);
    world.store.claim(&sequencer).await.unwrap();
    let good = world.credential(&sequencer);
    let code = Code::FailedPrecondition;
    assert_refused(
        world.deposit("42", None).await,
        code,
        "fencing-token-required",
    );
    let elsewhere = world.deposit("43", Some(&good)).await;
    assert_refused(
        elsewhere,
        Code::PermissionDenied,
        "fencing-token-wrong-resource",
    );
    let forged = good.value().to_str().unwrap().replacen("33;", "34;", 1);
    let forged = world.deposit("42", Some(&forged.parse().unwrap())).await;
    assert_refused(forged, Code::PermissionDenied, "fencing-token-not-accepted");
    assert_eq!(world.deposit("42", Some(&good)).await.unwrap(), (10, true));
}
