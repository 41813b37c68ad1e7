//! A gRPC service whose writes are fenced by metadata: `tonic_service postgres://localhost/bank`
use std::error::Error;

use palisade::{
    Issuer, ResourceName,
    http::{Fenced, Unsigned},
    store::{FenceError, PgFencedStore},
};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use examples::bank::{
    Balance, Update,
    bank_server::{Bank, BankServer},
};

struct Accounts {
    store: PgFencedStore,
    /// All clients are believed; `palisade::http::signed` is for clients that are not.
    tokens: Unsigned,
}

#[tonic::async_trait]
impl Bank for Accounts {
    async fn update(&self, request: Request<Update>) -> Result<Response<Balance>, Status> {
        let (metadata, _, update) = request.into_parts();
        // The metadata of gRPC are the headers of HTTP/2, with `fencing-token` among them.
        let fenced = Fenced::from_headers(&metadata.into_headers(), &self.tokens)
            .map_err(|rejection| Status::permission_denied(rejection.to_string()))?
            .ok_or_else(|| Status::failed_precondition("a fencing token is required"))?;
        let account = ResourceName::new(format!("account:{}", update.id))
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        fenced
            .must_be_about(&account)
            .map_err(|rejection| Status::permission_denied(rejection.to_string()))?;
        let mut tx = self.store.begin(&fenced).await.map_err(status)?;
        let balance =
            sqlx::query_scalar("UPDATE accounts SET balance = $1 WHERE id = $2 RETURNING balance")
                .bind(update.balance)
                .bind(update.id)
                .fetch_optional(&mut *tx)
                .await
                .map_err(|error| status(error.into()))?
                .ok_or_else(|| Status::not_found("no such account"))?;
        tx.commit().await.map_err(status)?;
        Ok(Response::new(Balance { balance }))
    }
}

/// `FAILED_PRECONDITION` tells a client not to send the same again, `UNAVAILABLE` that it may.
fn status(error: FenceError) -> Status {
    if error.is_fenced() {
        return Status::failed_precondition(error.to_string());
    }
    if error.is_retryable() {
        return Status::unavailable("busy");
    }
    match error {
        FenceError::CommitUnknown { .. } => Status::unknown("read before you repeat it"),
        _ => Status::internal("see the log of the service"),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: .. DATABASE_URL")?;
    let store = PgFencedStore::new(sqlx::PgPool::connect(&url).await?);
    store.migrate().await?;
    let tokens = Unsigned::new(Issuer::new("postgres")?);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    Server::builder()
        .add_service(BankServer::new(Accounts { store, tokens }))
        .serve_with_incoming(TcpListenerStream::new(listener))
        .await?;
    Ok(())
}
