//! A gRPC service whose writes are fenced by metadata: `tonic_service postgres://localhost/bank`
use examples::bank::{Balance, Update, bank_server};
use palisade::http::{Fenced, Unsigned};
use palisade::store::{FenceError, PgFencedStore};
use palisade::{Issuer, ResourceName};
use std::error::Error;
use tonic::transport::{Server, server::TcpIncoming};
use tonic::{Request, Response, Status};

struct Accounts {
    store: PgFencedStore,
    /// All clients are trusted; use `palisade::http::signed` for clients that are not.
    tokens: Unsigned,
}

#[tonic::async_trait]
impl bank_server::Bank for Accounts {
    async fn update(&self, request: Request<Update>) -> Result<Response<Balance>, Status> {
        let (metadata, _, Update { id, balance }) = request.into_parts();
        // The metadata of gRPC are the headers of HTTP/2, with `fencing-token` among them.
        let headers = metadata.into_headers();
        let fenced = Fenced::from_headers(&headers, &self.tokens).map_err(denied)?;
        let fenced = fenced.ok_or_else(|| Status::failed_precondition("no fencing token"))?;
        let account = ResourceName::new(format!("account:{id}")).map_err(denied)?;
        fenced.must_be_about(&account).map_err(denied)?;
        let mut tx = self.store.begin(&fenced).await.map_err(status)?;
        let update = sqlx::query("UPDATE accounts SET balance = $1 WHERE id = $2");
        let updated = update.bind(balance).bind(id).execute(&mut *tx).await;
        updated.map_err(|error| status(error.into()))?;
        tx.commit().await.map_err(status)?;
        Ok(Response::new(Balance { balance }))
    }
}

fn denied(why: impl ToString) -> Status {
    Status::permission_denied(why.to_string())
}

/// After `FAILED_PRECONDITION` a client must not repeat the request; after `UNAVAILABLE` it may.
fn status(error: FenceError) -> Status {
    match error {
        stale if stale.is_fenced() => Status::failed_precondition(stale.to_string()),
        busy if busy.is_retryable() => Status::unavailable("busy"),
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
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?;
    println!("http://{}", incoming.local_addr()?);
    let bank = bank_server::BankServer::new(Accounts { store, tokens });
    let server = Server::builder().add_service(bank);
    Ok(server.serve_with_incoming(incoming).await?)
}
