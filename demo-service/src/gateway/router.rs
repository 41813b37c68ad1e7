use std::time::Duration;

use axum::{
    Router,
    http::Method,
    middleware::from_fn_with_state,
    routing::{MethodRouter, delete, get, post, put},
};
use fenced_http::{FencingLayer, ProblemType, Scope};

use super::{
    ACCOUNT, JOB, accounts, app::App, health, jobs, leases, openapi, operators, problems,
    time_limit::GiveUp, unfenced::only_where_wanted,
};
use crate::ledger::Ledger;

/// The whole API. Writes have their time limit inside, see
/// [`to_the_end`](super::time_limit::to_the_end).
pub(super) fn router<DB: Ledger>(app: App<DB>) -> Router {
    let documentation = openapi::routes(openapi::Offered {
        operators: app.admin_token.is_some(),
        unfenced: app.unfenced,
    });
    Router::new()
        .merge(operator_routes(&app))
        .route("/v1/leases/{resource}", lease_routes(&app))
        .route("/v1/accounts/{id}", account_routes(&app))
        .route("/v1/unfenced/accounts/{id}", unfenced_account_routes(&app))
        .route("/v1/jobs/{id}/{slot}", job_routes(&app))
        .route("/v1/unfenced/jobs/{id}/{slot}", unfenced_job_routes(&app))
        .route("/healthz", get("ok\n"))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .with_state(app)
        .merge(documentation)
}

fn lease_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
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

/// The wait, and twice the limit: once for the body to arrive, once for the answer.
fn lock_limit<DB: Ledger>(app: &App<DB>, wait: Duration) -> GiveUp {
    GiveUp(wait + 2 * app.time_limit, problems::LOCK_UNAVAILABLE)
}

fn operator_routes<DB: Ledger>(app: &App<DB>) -> Router<App<DB>> {
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

fn account_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    let scope = Scope::path("/v1/accounts/", ACCOUNT);
    let fenced_write =
        FencingLayer::required(app.tokens.clone(), scope.clone()).methods([Method::PUT]);
    let fenced_read = FencingLayer::optional(app.tokens.clone(), scope).methods([Method::GET]);
    let in_time = GiveUp(app.time_limit, ProblemType::STORE_UNAVAILABLE);
    get(accounts::read)
        .route_layer((in_time, fenced_read))
        .merge(put(accounts::write).route_layer(fenced_write))
}

fn unfenced_account_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    let in_time = GiveUp(app.time_limit, ProblemType::STORE_UNAVAILABLE);
    get(accounts::read_unfenced)
        .route_layer(in_time)
        .put(accounts::write_unfenced)
        .layer(from_fn_with_state(app.clone(), only_where_wanted))
}

fn unfenced_job_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    put(jobs::run_unfenced).layer(from_fn_with_state(app.clone(), only_where_wanted))
}

fn job_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    let fence = FencingLayer::required(app.tokens.clone(), Scope::path("/v1/jobs/", JOB))
        .methods([Method::PUT]);
    put(jobs::run).route_layer(fence)
}
