//! A request with a header [`traceparent`](https://www.w3.org/TR/trace-context/) becomes a part of
//! the trace that this header names.

use axum::http::HeaderMap;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes a span part of the trace that a request names.
pub(crate) fn go_on(span: &Span, headers: &HeaderMap) {
    let parent = TraceContextPropagator::new().extract(&Headers(headers));
    // This fails if no subscriber listens to this span.
    span.set_parent(parent).ok();
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}
