use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::{
    extract::{Request, State},
    http::Method,
    middleware::Next,
    response::Response,
};
use fenced_http::ProblemType;
use serde::Serialize;

use super::problems;

/// Counts what came of the requests of all clients of one gateway, since it was started.
///
/// Cloning is cheap and shares the counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic(Arc<Mutex<TrafficCounts>>);

/// The counts of a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct TrafficCounts {
    grants: u64,
    renewals: u64,
    releases: u64,
    /// Leases whose holder learned, by a renewal or a release, that they had ended before.
    losses: u64,
    /// Writes that a fence let pass.
    writes: u64,
    /// Requests whose token was refused: stale, made up, for something else, malformed or missing.
    refusals: u64,
}

impl Traffic {
    pub(crate) fn counts(&self) -> TrafficCounts {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, TrafficCounts> {
        // Never half changed: a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_down(&self, method: &Method, path: &str, response: &Response) {
        let mut counts = self.lock();
        if let Some(counter) = counts.counter(method, path, response) {
            *counter += 1;
        }
    }
}

impl TrafficCounts {
    fn counter(&mut self, method: &Method, path: &str, response: &Response) -> Option<&mut u64> {
        let is_lease = path.starts_with("/v1/leases/");
        let is_account = path.starts_with("/v1/accounts/");
        match response.extensions().get::<ProblemType>() {
            Some(&problems::LEASE_ENDED) => return Some(&mut self.losses),
            Some(kind) => return is_refused(*kind).then_some(&mut self.refusals),
            None if !response.status().is_success() => return None,
            None => {}
        }
        match *method {
            Method::POST if is_lease => Some(&mut self.grants),
            Method::PUT if is_lease => Some(&mut self.renewals),
            Method::DELETE if is_lease => Some(&mut self.releases),
            Method::PUT if is_account => Some(&mut self.writes),
            _ => None,
        }
    }
}

/// Whether it is the client's token that was not good.
fn is_refused(kind: ProblemType) -> bool {
    kind.slug().starts_with("fencing-") && kind.status().is_client_error()
}

/// A middleware around all routes.
pub(super) async fn count(
    State(traffic): State<Traffic>,
    request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    traffic.take_down(&method, &path, &response);
    response
}

#[cfg(test)]
mod tests {
    use axum::{http::StatusCode, response::IntoResponse};
    use fenced_http::Problem;

    use super::*;

    #[test]
    fn each_answer_is_counted_as_what_it_means_to_a_client() {
        let traffic = Traffic::default();
        let (lease, account, free) = ("/v1/leases/a", "/v1/accounts/a", "/v1/unfenced/accounts/a");
        for (method, path, answer) in [
            (Method::POST, lease, Ok(201)),
            (Method::POST, lease, Err(problems::LOCK_HELD)),
            (Method::PUT, lease, Ok(200)),
            (Method::PUT, lease, Err(problems::LEASE_ENDED)),
            (Method::DELETE, lease, Ok(204)),
            (Method::GET, lease, Ok(200)),
            (Method::PUT, account, Ok(200)),
            (Method::PUT, account, Err(ProblemType::TOKEN_STALE)),
            (Method::PUT, account, Err(ProblemType::TOKEN_NOT_ACCEPTED)),
            (Method::PUT, account, Err(ProblemType::HOLDER_CONFLICT)),
            (Method::PUT, account, Err(ProblemType::TOKEN_REQUIRED)),
            // The fence has let it pass.
            (Method::PUT, account, Err(ProblemType::SERVICE_FAULT)),
            (Method::GET, account, Ok(200)),
            (Method::PUT, free, Ok(200)),
            (Method::PUT, free, Ok(503)),
        ] {
            let response = answer.map_or_else(
                |kind| Problem::new(kind).to_response(),
                |status| StatusCode::from_u16(status).unwrap().into_response(),
            );
            traffic.take_down(&method, path, &response);
        }
        let told = serde_json::json!(traffic.counts());
        assert_eq!(
            told,
            serde_json::json!({
                "grants": 1, "renewals": 1, "releases": 1, "losses": 1, "writes": 1, "refusals": 4,
            })
        );
    }
}
