use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use lock_core::ResourceName;
use tokio::time::timeout;

use super::{app::App, wire::ReadyBody};
use crate::ledger::Ledger;

/// How long each of the two may take to answer: balancers ask every few seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// `GET /readyz`: whether requests can be served. 503 if the lock service or the store does not
/// answer, and while the gateway shuts down.
///
/// `/healthz` says only that the process is alive: restarting it would not help if a server behind
/// it is down.
pub(super) async fn ready<DB: Ledger>(State(app): State<App<DB>>) -> (StatusCode, Json<ReadyBody>) {
    // Any name will do: all that counts is that there is an answer.
    let (lock, store) = match ResourceName::new("readyz") {
        Ok(probe) => tokio::join!(
            answers(app.locks().inspect(&probe)),
            answers(app.store().high_water(&probe)),
        ),
        Err(_) => (false, false),
    };
    let closing = *app.is_closing.borrow();
    let status = match lock && store && !closing {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let body = ReadyBody {
        lock_service: lock,
        store,
        shutting_down: closing,
    };
    (status, Json(body))
}

/// `GET /metrics`: what the crates count, as Prometheus reads it.
pub(super) async fn metrics<DB: Ledger>(
    State(app): State<App<DB>>,
) -> Result<impl IntoResponse, StatusCode> {
    let metrics = app.metrics.as_ref().ok_or(StatusCode::NOT_FOUND)?;
    let format = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    Ok((format, metrics.render()))
}

async fn answers<T, E: std::error::Error>(asked: impl Future<Output = Result<T, E>>) -> bool {
    match timeout(PATIENCE, asked).await {
        Ok(Ok(_)) => true,
        Ok(Err(error)) => {
            tracing::warn!(%error, "not ready");
            false
        }
        Err(_) => {
            tracing::warn!("not ready: no answer within {PATIENCE:?}");
            false
        }
    }
}
