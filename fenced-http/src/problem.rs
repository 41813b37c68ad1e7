use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use lock_core::FencingToken;
use serde_json::{Map, Value};

use crate::{FENCING_HIGH_WATER, ProblemType};

/// A problem document (RFC 9457) and the response around it.
///
/// The response is never cached, and never contains a holder.
/// ```
/// # use fenced_http::{Problem, ProblemType};
/// let problem = Problem::new(ProblemType::TOKEN_STALE)
///     .detail("a later holder has written: acquire the lock again and start afresh")
///     .with("token", 33);
/// let response: http::Response<bytes::Bytes> = problem.to_response();
/// assert_eq!(response.status(), 412);
/// assert_eq!(response.headers()["content-type"], "application/problem+json");
/// assert_eq!(response.headers()["cache-control"], "no-store");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a problem does nothing until it is a response"]
pub struct Problem {
    kind: ProblemType,
    members: Map<String, Value>,
    retry_after: Option<Duration>,
    high_water: Option<FencingToken>,
}

impl Problem {
    /// A problem of that kind, with `type`, `title` and `status`.
    pub fn new(kind: ProblemType) -> Self {
        let members = Map::from_iter([
            ("type".to_owned(), kind.uri().into()),
            ("title".to_owned(), kind.title().into()),
            ("status".to_owned(), kind.status().as_u16().into()),
        ]);
        Self {
            kind,
            members,
            retry_after: None,
            high_water: None,
        }
    }

    /// Adds a text for people, not for programs, about this event and about the next step.
    pub fn detail(self, text: impl Into<String>) -> Self {
        self.with("detail", text.into())
    }

    /// Adds a member for programs. Names are ASCII letters, digits and `_`.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// Adds the pause before the next try: a `Retry-After` header in whole seconds, rounded up, at
    /// least one.
    pub const fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Adds the high-water mark, in [`FENCING_HIGH_WATER`].
    pub const fn high_water(mut self, mark: FencingToken) -> Self {
        self.high_water = Some(mark);
        self
    }

    /// The kind of the problem.
    #[must_use]
    pub const fn kind(&self) -> ProblemType {
        self.kind
    }

    /// The response: `application/problem+json`, `Cache-Control: no-store`. Its [kind](Self::kind)
    /// is among the extensions, for layers that count.
    #[must_use]
    pub fn to_response<B: From<Bytes>>(&self) -> Response<B> {
        let body = Value::Object(self.members.clone()).to_string();
        let mut response = Response::new(B::from(Bytes::from(body)));
        *response.status_mut() = self.kind.status();
        response.extensions_mut().insert(self.kind);
        let headers = response.headers_mut();
        let media_type = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, media_type);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(delay) = self.retry_after {
            let begun = u64::from(delay.subsec_nanos() > 0);
            let seconds = std::cmp::max(1, delay.as_secs().saturating_add(begun));
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(mark) = self.high_water {
            headers.insert(&FENCING_HIGH_WATER, HeaderValue::from(mark.get()));
        }
        response
    }
}
