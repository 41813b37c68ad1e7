//! `/v1/admin/leases`: for operators, who send the admin token. If the configuration has no admin
//! token, these paths do not exist.

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use fenced_http::Problem;
use lock_core::{ForceReleased, ResourceName};
use subtle::ConstantTimeEq;

use crate::keys::KeyTable;
use crate::{
    AdminToken,
    app::App,
    body::Segment,
    error::ApiError,
    leases, problems,
    wire::{ForceReleasedBody, InspectBody, LeasesBody},
};

/// `GET`: everything that is held or waited for.
pub(crate) async fn list<DB: KeyTable>(
    State(app): State<App<DB>>,
) -> Result<Json<LeasesBody>, ApiError> {
    let listed = app.locks().list().await?.into_iter();
    let leases = listed.map(|listed| leases::view(listed.resource, listed.inspection));
    Ok(Json(LeasesBody {
        leases: leases.collect::<Vec<InspectBody>>(),
    }))
}

/// `DELETE`: ends the lease of the holder, and shuts that holder out of the store. If there is no
/// holder, the last holder is shut out.
pub(crate) async fn force_release<DB: KeyTable>(
    State(app): State<App<DB>>,
    Segment(resource): Segment,
) -> Result<Json<ForceReleasedBody>, ApiError> {
    let resource = ResourceName::new(resource)?;
    // A client that goes away must not stop this work between its two steps: the lease would have
    // ended, and the store would still accept the holder.
    let protected = app.protected.clone();
    let forcing = async move {
        let forced = protected.force_release(&resource).await;
        forced.map_err(|error| leases::not_acquired(error, &resource))
    };
    let forced = app.time_limit.to_the_end(forcing);
    Ok(Json(match forced.await? {
        ForceReleased::Ended { holder, revocation } => ForceReleasedBody {
            released: true,
            token: Some(holder.token),
            revocation: Some(revocation),
        },
        ForceReleased::NotHeld => ForceReleasedBody {
            released: false,
            token: None,
            revocation: None,
        },
    }))
}

/// Lets requests with the admin token pass.
pub(crate) async fn authenticate(
    State(expected): State<AdminToken>,
    request: Request,
    next: Next,
) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION);
    let shown = shown.and_then(|value| of_bearer(value.as_bytes()));
    // The comparison takes constant time, so that a client cannot guess the token letter by letter.
    if shown.is_some_and(|shown| bool::from(shown.ct_eq(expected.expose().as_bytes()))) {
        return next.run(request).await;
    }
    let problem = Problem::new(problems::NOT_AUTHENTICATED)
        .detail("this is for operators: send the admin token as Authorization: Bearer TOKEN");
    let mut response = problem.into_response();
    let scheme = HeaderValue::from_static("Bearer");
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, scheme);
    response
}

/// The token behind the scheme, whose name may be in any case and be followed by several spaces
/// (RFC 9110, section 11).
fn of_bearer(authorization: &[u8]) -> Option<&[u8]> {
    let space = authorization.iter().position(|byte| *byte == b' ')?;
    let (scheme, token) = authorization.split_at(space);
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer");
    is_bearer.then(|| token.trim_ascii_start())
}
