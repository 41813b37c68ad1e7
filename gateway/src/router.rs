use std::time::Duration;

use axum::{
    Router,
    http::Method,
    middleware::from_fn_with_state,
    routing::{MethodRouter, delete, get, post},
};
use fenced_http::{FencingLayer, Scope};

use crate::{app::App, health, keys::KeyTable, leases, operators, problems, time_limit::GiveUp};

/// The whole API. A request that must not be given up half way has its time limit in its handler:
/// see [`to_the_end`](crate::TimeLimit::to_the_end).
pub(crate) fn router<DB: KeyTable>(app: App<DB>) -> Router {
    Router::new()
        .merge(operator_routes(&app))
        .route("/v1/leases/{resource}", lease_routes(&app))
        .route("/healthz", get("ok\n"))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .with_state(app)
}

fn lease_routes<DB: KeyTable>(app: &App<DB>) -> MethodRouter<App<DB>> {
    let fence = FencingLayer::required(app.tokens.clone(), Scope::path("/v1/leases/", ""))
        .methods([Method::PUT, Method::DELETE]);
    let in_time = lock_limit(app, Duration::ZERO);
    let waiting = lock_limit(app, leases::WAIT_MAX);
    get(leases::inspect)
        .put(leases::renew)
        .delete(leases::release)
        .route_layer((in_time, fence))
        .merge(post(leases::acquire).route_layer(waiting))
}

/// The limit is the wait and twice the time limit: once for the arrival of the body, and once for
/// the answer.
fn lock_limit<DB: KeyTable>(app: &App<DB>, wait: Duration) -> GiveUp {
    GiveUp(wait + 2 * app.time_limit.get(), problems::LOCK_UNAVAILABLE)
}

fn operator_routes<DB: KeyTable>(app: &App<DB>) -> Router<App<DB>> {
    let Some(token) = app.admin_token.clone() else {
        return Router::new();
    };
    let in_time = lock_limit(app, Duration::ZERO);
    Router::new()
        .route("/v1/admin/leases", get(operators::list))
        .route_layer(in_time)
        .route(
            "/v1/admin/leases/{resource}",
            delete(operators::force_release),
        )
        .route_layer(from_fn_with_state(token, operators::authenticate))
}
