use axum::{
    Router,
    http::Method,
    middleware::from_fn_with_state,
    routing::{MethodRouter, get, put},
};
use fenced_http::{FencingLayer, ProblemType, Scope};
use fenced_store::FencedStore;
use palisade_cli::AnyStore;
use palisade_gateway::{Gateway, Tokens, documentation};

use super::{
    ACCOUNT, JOB, accounts,
    app::{App, Shared},
    jobs,
    openapi::document,
    unfenced::only_where_wanted,
    wiretap,
};
use crate::{events::Recorder, ledger::Ledger};

/// A gateway with accounts and jobs beside it. The recorder, if there is one, sees all requests.
pub(crate) fn routes(
    gateway: &Gateway,
    store: &AnyStore,
    recorder: Option<Recorder>,
    unfenced: bool,
) -> Router {
    let ours = match store.clone() {
        AnyStore::MySql(store) => of_store(gateway, store, recorder.clone(), unfenced),
        AnyStore::Postgres(store) => of_store(gateway, store, recorder.clone(), unfenced),
        AnyStore::Sqlite(store) => of_store(gateway, store, recorder.clone(), unfenced),
        _ => Router::new(),
    };
    let document = document(gateway.has_operators(), unfenced);
    let routes = gateway.router().merge(ours).merge(documentation(document));
    match recorder {
        Some(recorder) => routes.layer(from_fn_with_state(recorder, wiretap::take_down)),
        None => routes,
    }
}

/// Writes have their time limit in the handler: see
/// [`to_the_end`](palisade_gateway::TimeLimit::to_the_end).
fn of_store<DB: Ledger>(
    gateway: &Gateway,
    store: FencedStore<DB>,
    recorder: Option<Recorder>,
    unfenced: bool,
) -> Router {
    let tokens = gateway.tokens();
    let app = App::new(Shared {
        store,
        recorder,
        unfenced,
        time_limit: gateway.time_limit(),
    });
    Router::new()
        .route("/v1/accounts/{id}", account_routes(&app, &tokens))
        .route("/v1/unfenced/accounts/{id}", unfenced_account_routes(&app))
        .route("/v1/jobs/{id}/{slot}", job_routes(tokens))
        .route("/v1/unfenced/jobs/{id}/{slot}", unfenced_job_routes(&app))
        .with_state(app)
}

fn account_routes<DB: Ledger>(app: &App<DB>, tokens: &Tokens) -> MethodRouter<App<DB>> {
    let scope = Scope::path("/v1/accounts/", ACCOUNT);
    let fenced_write = FencingLayer::required(tokens.clone(), scope.clone());
    let fenced_write = fenced_write.methods([Method::PUT]);
    let fenced_read = FencingLayer::optional(tokens.clone(), scope).methods([Method::GET]);
    let in_time = app.time_limit.give_up(ProblemType::STORE_UNAVAILABLE);
    get(accounts::read)
        .route_layer((in_time, fenced_read))
        .merge(put(accounts::write).route_layer(fenced_write))
}

fn unfenced_account_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    let in_time = app.time_limit.give_up(ProblemType::STORE_UNAVAILABLE);
    get(accounts::read_unfenced)
        .route_layer(in_time)
        .put(accounts::write_unfenced)
        .layer(from_fn_with_state(app.clone(), only_where_wanted))
}

fn unfenced_job_routes<DB: Ledger>(app: &App<DB>) -> MethodRouter<App<DB>> {
    put(jobs::run_unfenced).layer(from_fn_with_state(app.clone(), only_where_wanted))
}

fn job_routes<DB: Ledger>(tokens: Tokens) -> MethodRouter<App<DB>> {
    let scope = Scope::path("/v1/jobs/", JOB);
    put(jobs::run).route_layer(FencingLayer::required(tokens, scope).methods([Method::PUT]))
}
