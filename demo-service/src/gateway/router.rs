use std::time::Duration;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::{Method, StatusCode},
    middleware,
    routing::{MethodRouter, get, post},
};
use fenced_store::http::{Disclose, FencingLayer, Scope, Unsigned};
use tower_http::{
    limit::RequestBodyLimitLayer,
    timeout::TimeoutLayer,
    trace::{DefaultMakeSpan, DefaultOnResponse, TraceLayer},
};
use tracing::Level;

use super::{ACCOUNT, accounts, app::App, leases, problems};
use crate::ledger::Ledger;

/// The longest body. The longest that is of any use has some hundred bytes.
const BODY_LEN_MAX: usize = 16 * 1024;

/// How long a request may take that waits for no lease.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(15);

/// The whole API.
pub(super) fn router<DB: Ledger>(app: App<DB>) -> Router {
    let level = Level::INFO;
    let trace = TraceLayer::new_for_http()
        .make_span_with(DefaultMakeSpan::new().level(level))
        .on_response(DefaultOnResponse::new().level(level));
    Router::new()
        .route("/v1/leases/{resource}", lease_routes(&app))
        .route("/v1/accounts/{id}", account_routes(&app))
        .route("/v1/unfenced/accounts/{id}", unfenced_account_routes())
        .route(
            "/healthz",
            get("ok\n").route_layer(in_time(REQUEST_TIME_MAX)),
        )
        .with_state(app)
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(BODY_LEN_MAX))
        .layer(middleware::map_response(problems::document))
        .layer(trace)
}

fn lease_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    let fence = FencingLayer::required(verifier(app))
        .resource(Scope::path("/v1/leases/", ""))
        .methods([Method::PUT, Method::DELETE]);
    let waiting = in_time(leases::WAIT_MAX + REQUEST_TIME_MAX);
    get(leases::inspect)
        .put(leases::renew)
        .delete(leases::release)
        .route_layer(fence)
        .route_layer(in_time(REQUEST_TIME_MAX))
        .merge(post(leases::acquire).route_layer(waiting))
}

fn account_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    let scope = Scope::path("/v1/accounts/", ACCOUNT);
    let fenced_write = FencingLayer::required(verifier(app))
        .resource(scope.clone())
        .methods([Method::PUT])
        .disclose(Disclose::Always);
    let fenced_read = FencingLayer::optional(verifier(app))
        .resource(scope)
        .methods([Method::GET])
        .disclose(Disclose::Always);
    get(accounts::read)
        .put(accounts::write)
        .route_layer(fenced_write)
        .route_layer(fenced_read)
        .route_layer(in_time(REQUEST_TIME_MAX))
}

fn unfenced_account_routes<DB: Ledger>() -> MethodRouter<App<DB>> {
    get(accounts::read_unfenced)
        .put(accounts::write_unfenced)
        .route_layer(in_time(REQUEST_TIME_MAX))
}

/// Tokens are not signed, so their issuer and their size must be plausible.
fn verifier<DB: Ledger>(app: &App<DB>) -> Unsigned {
    Unsigned::new(app.locks().issuer().clone())
}

fn in_time(limit: Duration) -> TimeoutLayer {
    TimeoutLayer::with_status_code(StatusCode::REQUEST_TIMEOUT, limit)
}
