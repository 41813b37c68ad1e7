//! A service whose writes are fenced by a header: `web_service postgres://localhost/bank`
use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::put,
};
use palisade::{
    Issuer,
    http::{Fenced, FencingLayer, Scope, Unsigned},
    store::{FenceError, PgFencedStore, Receipt},
};

async fn update(
    fenced: Fenced,
    State(store): State<PgFencedStore>,
    Path(id): Path<i64>,
    Json(balance): Json<i64>,
) -> Result<(Option<Receipt>, StatusCode), FenceError> {
    let mut tx = store.begin(&fenced).await?; // a stale token ends here, with 412
    let done = sqlx::query("UPDATE accounts SET balance = $1 WHERE id = $2")
        .bind(balance)
        .bind(id)
        .execute(&mut *tx)
        .await?;
    if done.rows_affected() == 0 {
        return Ok((None, StatusCode::NOT_FOUND)); // the drop rolls the transaction back
    }
    // The receipt of the commit becomes the header `Fencing-Accepted`.
    Ok((Some(tx.commit().await?), StatusCode::NO_CONTENT))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args()
        .nth(1)
        .ok_or("usage: web_service DATABASE_URL")?;
    let store = PgFencedStore::new(sqlx::PgPool::connect(&url).await?);
    store.migrate().await?;
    // All clients are trusted; use `palisade::http::signed` for clients that are not. The name is
    // the `LockManager::issuer()` of the clients.
    let tokens = Unsigned::new(Issuer::new("postgres")?);
    let accounts = Scope::path_of::<i64>("/accounts/", "account:");
    let fencing = FencingLayer::required(tokens, accounts);
    let routes = put(update).route_layer(fencing);
    let router = Router::new()
        .route("/accounts/{id}", routes)
        .with_state(store);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, router).await?;
    Ok(())
}
