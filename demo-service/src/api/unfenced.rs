//! The unfenced twins of the accounts and jobs, which accept every stale write. They exist for the
//! accounts of the story that is played. For all other accounts they exist only with `--unfenced`.

use axum::{
    extract::{RawPathParams, Request, State},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};
use lock_core::ResourceName;

use super::{account_resource, app::App};
use crate::ledger::Ledger;

/// A middleware around routes with an account as `{id}`: 404 for accounts that have no unfenced
/// twin.
pub(super) async fn only_where_wanted<DB: Ledger>(
    State(app): State<App<DB>>,
    parameters: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    let mut parameters = parameters.iter();
    let id = parameters.find_map(|(name, id)| (name == "id").then_some(id));
    if app.unfenced || id.is_some_and(|id| is_on_stage(&app, id)) {
        return next.run(request).await;
    }
    StatusCode::NOT_FOUND.into_response()
}

/// Whether the account belongs to the story that is played. Its name has a random number of that
/// story.
fn is_on_stage<DB: Ledger>(app: &App<DB>, id: &str) -> bool {
    let account = ResourceName::new(account_resource(id));
    let recorder = app.recorder.as_ref();
    account.is_ok_and(|account| recorder.is_some_and(|recorder| recorder.is_on_stage(&account)))
}
