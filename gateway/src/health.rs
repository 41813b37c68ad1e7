use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::IntoResponse,
};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::keys::KeyTable;
use crate::{
    app::{App, Shared},
    wire::ReadyBody,
};

/// The longest wait for the lock service, and for the store. Balancers ask every few seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the result of a probe is used. Any client may ask, and each probe makes the lock
/// service write.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// The result of the last probe. Requests that come during a probe wait for it.
#[derive(Debug, Default)]
pub(crate) struct Probe(Mutex<Option<(Instant, Found)>>);

/// The reasons why the lock service or the store takes no writes, if there are any.
#[derive(Clone, Debug)]
struct Found {
    lock_service: Option<String>,
    store: Option<String>,
}

impl Probe {
    async fn ask<DB: KeyTable>(&self, app: &Shared<DB>) -> Found {
        let mut last = self.0.lock().await;
        if let Some((asked, found)) = &*last
            && asked.elapsed() < GOOD_FOR
        {
            return found.clone();
        }
        let asked = Instant::now();
        let (lock_service, store) = tokio::join!(
            why_not(app.locks().check_writable()),
            why_not(app.store().check_writable()),
        );
        let found = Found {
            lock_service,
            store,
        };
        *last = Some((asked, found.clone()));
        found
    }
}

/// `GET /readyz`: whether requests can be served. The answer is 503 if the lock service or the
/// store does not take writes, and while the gateway shuts down. No client can hold up the probe.
///
/// `/healthz` says only that the process is alive, because a restart would not help if a server
/// behind the gateway is down.
pub(crate) async fn ready<DB: KeyTable>(
    State(app): State<App<DB>>,
) -> (StatusCode, Json<ReadyBody>) {
    let found = app.probe.ask(&*app).await;
    let shutting_down = *app.is_closing.borrow();
    let (lock_service, store) = (found.lock_service.is_none(), found.store.is_none());
    let status = match lock_service && store && !shutting_down {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let body = ReadyBody {
        lock_service,
        store,
        shutting_down,
        reasons: found.lock_service.into_iter().chain(found.store).collect(),
    };
    (status, Json(body))
}

/// `GET /metrics`: the metrics of all crates, in the format of Prometheus.
pub(crate) async fn metrics<DB: KeyTable>(
    State(app): State<App<DB>>,
) -> Result<impl IntoResponse, StatusCode> {
    let metrics = app.metrics.as_ref().ok_or(StatusCode::NOT_FOUND)?;
    let format = [(
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    )];
    Ok((format, metrics.render()))
}

async fn why_not<E: std::error::Error>(
    asked: impl Future<Output = Result<(), E>>,
) -> Option<String> {
    let why = match timeout(PATIENCE, asked).await {
        Ok(Ok(())) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {PATIENCE:?}"),
    };
    tracing::warn!(why, "not ready");
    Some(why)
}
