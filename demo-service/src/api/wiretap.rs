//! Records requests of clients of the scenario as they are on the wire, the leases in their
//! answers, and the refusals of their writes. The gateway does not know the recorder.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header::AUTHORIZATION,
        request, response,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use fenced_http::{FENCING_HIGH_WATER, Problem};
use lock_core::{FencingToken, ResourceName};
use palisade_gateway::{
    problems,
    wire::{AcquireBody, LeaseBody, RenewBody},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    account_resource, job_resource,
    witness::{self, Taken},
};
use crate::events::{Act, Message, Recorder, What};

/// The longest body that is recorded, and the longest time for a body to arrive. The clients of the
/// scenario need far less.
const LEN_MAX: usize = 64 * 1024;
const TIME_MAX: Duration = Duration::from_secs(15);

/// A middleware around all routes. A request that is not about a resource on stage passes
/// unchanged.
pub(super) async fn take_down(
    State(recorder): State<Recorder>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let begun = Target::of(&parts).and_then(|target| {
        let client = witness::client(&parts.headers)?;
        // The request is kept unless there are too many. Its outcome is always kept.
        let on_stage = recorder.is_on_stage(&target.resource);
        let exchange = recorder.begin_exchange(&target.resource, head(&parts));
        on_stage.then_some((exchange, client, target))
    });
    let Some((exchange, client, target)) = begun else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    // The body is read here and not later, because the edge may refuse a request without reading
    // its body.
    let asked = match timeout(TIME_MAX, to_bytes(body, LEN_MAX)).await {
        Ok(Ok(asked)) => asked,
        Ok(Err(_)) => return Problem::new(problems::TOO_LARGE).into_response(),
        Err(_) => return Problem::new(problems::REQUEST_TIMEOUT).into_response(),
    };
    let token = witness::token(&parts.headers);
    if let Some(exchange) = exchange {
        parts.extensions.insert(Taken(exchange));
    }
    let method = parts.method.clone();
    let note = |what| recorder.note_seen(&target.resource, client, exchange, what);
    if target.is_lease
        && method == Method::POST
        && let Some(AcquireBody { wait_ms, .. }) = read(&asked)
    {
        note(What::AcquireRequested { wait_ms });
    }
    let request = Request::from_parts(parts, Body::from(asked.clone()));
    let (parts, body) = next.run(request).await.into_parts();
    // Answers of the gateway are complete and small.
    let body = to_bytes(body, LEN_MAX).await.unwrap_or_default();
    if target.is_write && parts.status.is_client_error() {
        note(refusal(&parts, token, &asked, &body));
    }
    if target.is_lease {
        let told = of_lease(&method, parts.status, token, &asked, &body);
        told.into_iter().flatten().for_each(note);
    }
    if let Some(exchange) = exchange {
        recorder.end_exchange(exchange, text(&asked), answer(&parts, &body));
    }
    Response::from_parts(parts, Body::from(body))
}

/// The parts of a request's target that the scenario needs.
struct Target {
    resource: ResourceName,
    /// Whether a refusal is a write that did not happen.
    is_write: bool,
    is_lease: bool,
}

impl Target {
    fn of(request: &request::Parts) -> Option<Self> {
        let path = request.uri.path();
        let below = |base: &str| path.strip_prefix(base)?.strip_prefix('/');
        let account = || {
            let id = Act::BOTH
                .into_iter()
                .find_map(|act| below(act.accounts_path()));
            id.map(account_resource)
        };
        let job = || {
            let place = Act::BOTH.into_iter().find_map(|act| below(act.jobs_path()));
            place?.split_once('/').map(|(id, _)| job_resource(id))
        };
        let written = account().or_else(job);
        let is_lease = written.is_none();
        let is_write = !is_lease && request.method == Method::PUT;
        let name = written.or_else(|| Some(below("/v1/leases")?.to_owned()))?;
        Some(Self {
            resource: ResourceName::new(name).ok()?,
            is_write,
            is_lease,
        })
    }
}

/// The part of an answer that is about a lease.
fn of_lease(
    method: &Method,
    status: StatusCode,
    token: Option<FencingToken>,
    asked: &Bytes,
    answer: &Bytes,
) -> [Option<What>; 2] {
    let ttl_ms = || Some(read::<RenewBody>(asked)?.ttl_ms);
    match (method, status) {
        (&Method::POST, StatusCode::CREATED) => {
            let lease: Option<LeaseBody> = read(answer);
            // The token is claimed before the gateway answers.
            let told = lease.map(|LeaseBody { token, ttl_ms, .. }| {
                [What::Granted { token, ttl_ms }, What::Claimed { token }]
            });
            told.map_or([None, None], |told| told.map(Some))
        }
        (&Method::POST, StatusCode::CONFLICT) => {
            let problem: Value = read(answer).unwrap_or_default();
            let retry_after_ms = problem["retry_after_ms"].as_u64();
            [
                retry_after_ms.map(|retry_after_ms| What::Held { retry_after_ms }),
                None,
            ]
        }
        (&Method::PUT, StatusCode::OK) => {
            let renewed = token.zip(ttl_ms());
            [
                renewed.map(|(token, ttl_ms)| What::Renewed { token, ttl_ms }),
                None,
            ]
        }
        (&Method::PUT, StatusCode::PRECONDITION_FAILED) => {
            [token.map(|token| What::RenewRefused { token }), None]
        }
        (&Method::DELETE, StatusCode::NO_CONTENT) => {
            [token.map(|token| What::Released { token }), None]
        }
        _ => [None, None],
    }
}

fn read<T: DeserializeOwned>(body: &Bytes) -> Option<T> {
    serde_json::from_slice(body).ok()
}

fn head(request: &request::Parts) -> Message {
    let request::Parts {
        method,
        uri,
        version,
        headers,
        ..
    } = request;
    Message {
        start: format!("{method} {uri} {}", name_of(*version)),
        headers: pairs(headers),
        body: String::new(),
    }
}

fn answer(response: &response::Parts, body: &Bytes) -> Message {
    Message {
        start: format!("{} {}", name_of(response.version), response.status),
        headers: pairs(&response.headers),
        body: text(body),
    }
}

fn refusal(
    response: &response::Parts,
    token: Option<FencingToken>,
    asked: &Bytes,
    answer: &Bytes,
) -> What {
    let problem: Value = read(answer).unwrap_or_default();
    let asked: Value = read(asked).unwrap_or_default();
    let kind = problem["type"].as_str().unwrap_or_default();
    let mark = response.headers.get(&FENCING_HIGH_WATER);
    let mark = mark.and_then(|mark| mark.to_str().ok()?.parse().ok());
    What::WriteRefused {
        token,
        status: response.status.as_u16(),
        high_water: mark.and_then(|mark| FencingToken::new(mark).ok()),
        attempted: asked["balance"].as_i64().unwrap_or_default(),
        problem: kind.rsplit(':').next().unwrap_or_default().to_owned(),
    }
}

/// The headers without the admin token, which the clients of the scenario do not use.
fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let pair =
        |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), text(value.as_bytes()));
    let shown = |(name, _): &(&HeaderName, &HeaderValue)| **name != AUTHORIZATION;
    headers.iter().filter(shown).map(pair).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The version as HTTP writes it. `Debug` of the type prints the same, but does not promise that.
const fn name_of(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests;
