use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use axum::{
    extract::{Request, State},
    http::{Method, StatusCode},
    middleware::Next,
    response::Response,
};
use serde::Serialize;

use super::problems;

/// Counts what came of the requests of all clients of one gateway, since it was started.
///
/// Cloning is cheap and shares the counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    grants: AtomicU64,
    renewals: AtomicU64,
    releases: AtomicU64,
    losses: AtomicU64,
    writes: AtomicU64,
    refusals: AtomicU64,
}

/// The counts of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TrafficCounts {
    grants: u64,
    renewals: u64,
    releases: u64,
    /// Leases whose holder learned, by a renewal or a release, that they had ended before.
    losses: u64,
    /// Accesses to accounts that a fence let pass.
    writes: u64,
    /// Requests with a token that was refused: stale, made up, for something else, or missing.
    refusals: u64,
}

impl Traffic {
    pub(crate) fn counts(&self) -> TrafficCounts {
        let Counters {
            grants,
            renewals,
            releases,
            losses,
            writes,
            refusals,
        } = &*self.0;
        TrafficCounts {
            grants: grants.load(Relaxed),
            renewals: renewals.load(Relaxed),
            releases: releases.load(Relaxed),
            losses: losses.load(Relaxed),
            writes: writes.load(Relaxed),
            refusals: refusals.load(Relaxed),
        }
    }

    fn counter(&self, method: &Method, path: &str, status: StatusCode) -> Option<&AtomicU64> {
        let counters = &*self.0;
        let is_lease = path.starts_with("/v1/leases/");
        let is_account = path.starts_with("/v1/accounts/");
        let is_refused = matches!(status.as_u16(), 403 | 412 | 428);
        if is_lease && status == problems::LEASE_ENDED.status() {
            return Some(&counters.losses);
        }
        if (is_lease || is_account) && is_refused {
            return Some(&counters.refusals);
        }
        match (is_lease, method) {
            (true, &Method::POST) if status == StatusCode::CREATED => Some(&counters.grants),
            (true, &Method::PUT) if status.is_success() => Some(&counters.renewals),
            (true, &Method::DELETE) if status.is_success() => Some(&counters.releases),
            (false, &Method::PUT) if is_account && status.is_success() => Some(&counters.writes),
            _ => None,
        }
    }
}

/// A middleware around all routes.
pub(super) async fn count(
    State(traffic): State<Traffic>,
    request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    if let Some(counter) = traffic.counter(&method, &path, response.status()) {
        counter.fetch_add(1, Relaxed);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_is_counted_as_what_it_means_to_a_client() {
        let traffic = Traffic::default();
        let (lease, account, free) = ("/v1/leases/a", "/v1/accounts/a", "/v1/unfenced/accounts/a");
        for (method, path, status) in [
            (Method::POST, lease, 201),
            (Method::POST, lease, 409),
            (Method::PUT, lease, 200),
            (Method::PUT, lease, 412),
            (Method::DELETE, lease, 204),
            (Method::PUT, account, 200),
            (Method::PUT, account, 412),
            (Method::PUT, account, 403),
            (Method::GET, account, 200),
            (Method::PUT, free, 200),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            if let Some(counter) = traffic.counter(&method, path, status) {
                counter.fetch_add(1, Relaxed);
            }
        }
        let told = serde_json::json!(traffic.counts());
        assert_eq!(
            told,
            serde_json::json!({
                "grants": 1, "renewals": 1, "releases": 1, "losses": 1, "writes": 1, "refusals": 2,
            })
        );
    }
}
