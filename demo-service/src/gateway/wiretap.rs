//! Takes down requests of clients of the scenario as they are on the wire, and the refusals of
//! their writes, which may come from the edge before any handler has seen them.

use std::time::Duration;

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, Version, header::AUTHORIZATION, request,
        response,
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use fenced_http::{FENCING_HIGH_WATER, Problem};
use lock_core::{FencingToken, ResourceName};
use serde_json::Value;
use tokio::time::timeout;

use super::{
    account_resource, job_resource, problems,
    witness::{self, Taken},
};
use crate::events::{Act, Message, Recorder, What};

/// The longest body that is taken down, and how long one may take to arrive. The clients of the
/// scenario need a fraction of it.
const LEN_MAX: usize = 64 * 1024;
const TIME_MAX: Duration = Duration::from_secs(15);

/// A middleware around all routes. What is not about a resource on stage passes untouched.
pub(super) async fn take_down(
    State(recorder): State<Recorder>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let begun = Target::of(&parts).and_then(|target| {
        let client = witness::client(&parts.headers)?;
        // The request is kept as long as there are not too many; what has happened is, always.
        let on_stage = recorder.is_on_stage(&target.resource);
        let exchange = recorder.begin_exchange(&target.resource, head(&parts));
        on_stage.then_some((exchange, client, target))
    });
    let Some((exchange, client, target)) = begun else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    // Here and not in passing: the edge refuses without reading the body.
    let asked = match timeout(TIME_MAX, to_bytes(body, LEN_MAX)).await {
        Ok(Ok(asked)) => asked,
        Ok(Err(_)) => return Problem::new(problems::TOO_LARGE).into_response(),
        Err(_) => return Problem::new(problems::REQUEST_TIMEOUT).into_response(),
    };
    let token = witness::token(&parts.headers);
    if let Some(exchange) = exchange {
        parts.extensions.insert(Taken(exchange));
    }
    let request = Request::from_parts(parts, Body::from(asked.clone()));
    let (parts, body) = next.run(request).await.into_parts();
    // The gateway's own answers are whole and small.
    let body = to_bytes(body, LEN_MAX).await.unwrap_or_default();
    if target.is_write && parts.status.is_client_error() {
        let refused = refusal(&parts, token, &asked, &body);
        recorder.note_seen(&target.resource, client, exchange, refused);
    }
    if let Some(exchange) = exchange {
        recorder.end_exchange(exchange, text(&asked), answer(&parts, &body));
    }
    Response::from_parts(parts, Body::from(body))
}

/// Where a request goes, as far as the scenario is concerned.
struct Target {
    resource: ResourceName,
    /// Whether a refusal is a write that did not happen.
    is_write: bool,
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
        let is_write = written.is_some() && request.method == Method::PUT;
        let name = written.or_else(|| Some(below("/v1/leases")?.to_owned()))?;
        Some(Self {
            resource: ResourceName::new(name).ok()?,
            is_write,
        })
    }
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
    let problem: Value = serde_json::from_slice(answer).unwrap_or_default();
    let asked: Value = serde_json::from_slice(asked).unwrap_or_default();
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

/// But for what lets operators in, which the clients of the scenario have no use for.
fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    let pair =
        |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), text(value.as_bytes()));
    let shown = |(name, _): &(&HeaderName, &HeaderValue)| **name != AUTHORIZATION;
    headers.iter().filter(shown).map(pair).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// As it is written; `Debug` of the type does the same and promises nothing.
const fn name_of(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests;
