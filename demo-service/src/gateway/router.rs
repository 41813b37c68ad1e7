use std::time::Duration;

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request},
    http::Method,
    middleware::from_fn_with_state,
    routing::{MethodRouter, delete, get, post, put},
};
use fenced_http::{FencingLayer, ProblemType, Scope};
use tower::ServiceBuilder;
use tower_http::{
    classify::ServerErrorsFailureClass,
    limit::RequestBodyLimitLayer,
    request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer},
    trace::{DefaultOnFailure, DefaultOnResponse, OnFailure, TraceLayer},
};
use tracing::{Level, Span};

use super::{
    ACCOUNT, accounts, app::App, health, leases, openapi, operators, own_name, own_name::OwnNames,
    problems, request_id, secrets, time_limit,
};
use crate::ledger::Ledger;

/// The longest body. No request needs more than some hundred bytes.
const BODY_LEN_MAX: usize = 16 * 1024;

/// The whole API. Writes have their time limit inside, see [`time_limit::to_the_end`].
pub(super) fn router<DB: Ledger>(app: App<DB>) -> Router {
    let documentation = openapi::routes(app.admin_token.is_some());
    Router::new()
        .merge(operator_routes(&app))
        .route("/v1/leases/{resource}", lease_routes(&app))
        .route("/v1/accounts/{id}", account_routes(&app))
        .route("/v1/unfenced/accounts/{id}", unfenced_account_routes(&app))
        .route("/healthz", get("ok\n"))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .with_state(app)
        .merge(documentation)
}

/// What all routes have in common, and the answer where there is no route. All in one layer: each
/// layer of a router is a box of its own, which is cloned for every request.
pub(super) fn finish(routes: Router, names: OwnNames) -> Router {
    let trace = TraceLayer::new_for_http()
        .make_span_with(span)
        .on_response(DefaultOnResponse::new().level(Level::INFO))
        .on_failure(failed);
    let around = ServiceBuilder::new()
        .layer(secrets::hidden())
        .map_request(request_id::only_sane)
        .layer(SetRequestIdLayer::x_request_id(MakeRequestUuid))
        .layer(trace)
        .layer(PropagateRequestIdLayer::x_request_id())
        .map_response(problems::document)
        .layer(from_fn_with_state(names, own_name::check))
        .layer(RequestBodyLimitLayer::new(BODY_LEN_MAX))
        .layer(DefaultBodyLimit::disable());
    routes.layer(around)
}

/// What every line of the log says of its request. It has no headers: some are secret.
fn span(request: &Request) -> Span {
    let (method, path) = (request.method(), request.uri().path());
    tracing::info_span!("request", request_id = request_id::of(request), %method, path)
}

/// An error in the log for a 5xx, except for what the lock service cannot do: that is no failure.
fn failed(class: ServerErrorsFailureClass, latency: Duration, span: &Span) {
    let lacks_it = problems::LOCK_LACKS_IT.status();
    if !matches!(class, ServerErrorsFailureClass::StatusCode(status) if status == lacks_it) {
        DefaultOnFailure::new().on_failure(class, latency, span);
    }
}

fn lease_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    let fence = FencingLayer::required(app.tokens.clone())
        .resource(Scope::path("/v1/leases/", ""))
        .methods([Method::PUT, Method::DELETE]);
    let in_time = from_fn_with_state(lock_limit(app, Duration::ZERO), time_limit::give_up);
    let waiting = from_fn_with_state(lock_limit(app, leases::WAIT_MAX), time_limit::give_up);
    get(leases::inspect)
        .put(leases::renew)
        .delete(leases::release)
        .route_layer(fence)
        .route_layer(in_time)
        .merge(post(leases::acquire).route_layer(waiting))
}

/// The wait, and twice the limit: once for the body to arrive, once for the answer.
fn lock_limit<DB: Ledger>(app: &App<DB>, wait: Duration) -> (Duration, ProblemType) {
    (wait + 2 * app.time_limit, problems::LOCK_UNAVAILABLE)
}

fn operator_routes<DB: Ledger>(app: &App<DB>) -> Router<App<DB>> {
    let Some(token) = app.admin_token.clone() else {
        return Router::new();
    };
    let limit = lock_limit(app, Duration::ZERO);
    Router::new()
        .route("/v1/admin/leases", get(operators::list))
        .route_layer(from_fn_with_state(limit, time_limit::give_up))
        .route(
            "/v1/admin/leases/{resource}",
            delete(operators::force_release),
        )
        .route_layer(from_fn_with_state(token, operators::authenticate))
}

fn account_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    let scope = Scope::path("/v1/accounts/", ACCOUNT);
    let fenced_write = FencingLayer::required(app.tokens.clone())
        .resource(scope.clone())
        .methods([Method::PUT]);
    let fenced_read = FencingLayer::optional(app.tokens.clone())
        .resource(scope)
        .methods([Method::GET]);
    let limit = (app.time_limit, ProblemType::STORE_UNAVAILABLE);
    get(accounts::read)
        .route_layer(fenced_read)
        .route_layer(from_fn_with_state(limit, time_limit::give_up))
        .merge(put(accounts::write).route_layer(fenced_write))
}

fn unfenced_account_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    let limit = (app.time_limit, ProblemType::STORE_UNAVAILABLE);
    get(accounts::read_unfenced)
        .route_layer(from_fn_with_state(limit, time_limit::give_up))
        .put(accounts::write_unfenced)
}
