//! `/v1/leases`: several leases for one client, all of them or none.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use fenced_store::{ProtectedGuard, http::Problem};
use futures_util::future::try_join_all;
use lock_core::{Moment, Renewed, ResourceName, Ttl};

use super::{
    app::App,
    body::Body,
    caller::Caller,
    error::ApiError,
    idempotency::Keyed,
    leases::{self, Terms},
    problems,
    traffic::Granted,
    wire::{AcquireSeveralBody, GrantedBody},
};
use crate::ledger::Ledger;

/// The greatest number of resources in one request.
pub(super) const NAMED_MAX: usize = 16;

/// `POST`: acquires one after the other, in the order of their names, so that clients that ask in
/// this way do not wait for each other in a circle. `wait_ms` is for all of them.
pub(super) async fn acquire<DB: Ledger>(
    State(app): State<App<DB>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(asked): Body<AcquireSeveralBody>,
) -> Result<(StatusCode, Extension<Granted>, Json<GrantedBody>), ApiError> {
    let keyed = app.idempotency.keyed(&headers, "/v1/leases", &asked)?;
    let AcquireSeveralBody {
        resources,
        ttl_ms,
        wait_ms,
        metadata,
    } = asked;
    let resources = checked(resources)?;
    let terms = Terms::new(ttl_ms, wait_ms, metadata)?;
    let _place = leases::place(&app, terms.wait)?;
    if let Some(keyed) = &keyed {
        keyed.check(&app).await?;
    }
    let guards = tokio::select! {
        // As for one lease: none must be granted to nobody.
        biased;
        () = caller.gone() => return Err(leases::gone().into()),
        guards = one_by_one(&app, keyed.as_ref(), &resources, &terms) => guards?,
        () = app.closing() => return Err(leases::closing().into()),
    };
    // From here on they are the client's to renew and to release.
    let now = app.locks().clock().now();
    let leases = guards.into_iter().map(|(guard, deadline)| {
        let mut lease = guard.detach();
        lease.remaining = deadline.since(now);
        leases::lease_body(&app.tokens, &lease)
    });
    let leases = leases.collect::<Result<_, _>>()?;
    let granted = Granted(u64::try_from(resources.len()).unwrap_or(u64::MAX));
    let body = Json(GrantedBody { leases });
    Ok((StatusCode::CREATED, Extension(granted), body))
}

/// The names, each once.
fn checked(named: Vec<String>) -> Result<Vec<ResourceName>, ApiError> {
    let resources = named.into_iter().map(ResourceName::new);
    let resources = resources.collect::<Result<Vec<_>, _>>()?;
    let mut places = resources.iter().enumerate();
    let is_twice = places.any(|(place, name)| resources[..place].contains(name));
    if is_twice || !(1..=NAMED_MAX).contains(&resources.len()) {
        let detail = format!("resources are 1 to {NAMED_MAX} names, each of them once");
        return Err(Problem::new(problems::UNPROCESSABLE).detail(detail).into());
    }
    Ok(resources)
}

/// The guards, in the order in which the resources are named. If it fails, dropping the guards
/// gives back what was acquired before.
async fn one_by_one<DB: Ledger>(
    app: &App<DB>,
    keyed: Option<&Keyed>,
    resources: &[ResourceName],
    terms: &Terms,
) -> Result<Vec<Fresh<DB>>, ApiError> {
    let clock = app.locks().clock();
    let started = clock.now();
    let mut sorted: Vec<_> = resources.iter().collect();
    sorted.sort();
    let mut guards = Vec::new();
    for resource in sorted {
        let left = terms.wait.saturating_sub(clock.now().since(started));
        // The first ones are renewed while the last ones are waited for.
        let acquire = leases::prepared(app, keyed, resource, terms).wait(left);
        let guard = acquire.await;
        guards.push(guard.map_err(|error| leases::not_acquired(error, resource))?);
    }
    let mut guards = in_full(app, guards, terms.ttl).await?;
    let now = clock.now();
    if guards.iter().any(|(_, deadline)| *deadline <= now) {
        return Err(leases::lost());
    }
    guards.sort_by_key(|(guard, _)| resources.iter().position(|it| it == guard.resource()));
    Ok(guards)
}

/// A guard, and when its lease ends.
type Fresh<DB> = (ProtectedGuard<DB>, Moment);

/// Renews them all, because clients are promised their `ttl_ms`. The first ones have been held for
/// a while, and one that was waited for may have a second until its first renewal.
async fn in_full<DB: Ledger>(
    app: &App<DB>,
    guards: Vec<ProtectedGuard<DB>>,
    ttl: Ttl,
) -> Result<Vec<Fresh<DB>>, ApiError> {
    let renewals = guards.into_iter().map(async |guard| {
        match app.locks().renew(guard.sequencer(), ttl).await? {
            Renewed::Renewed(lease) => Ok((guard, lease.deadline())),
            Renewed::NotHolder => Err(leases::lost()),
        }
    });
    try_join_all(renewals).await
}
