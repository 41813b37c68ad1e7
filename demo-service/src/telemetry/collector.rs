//! Spans for a collector of OpenTelemetry, by OTLP over HTTP. A request that says where it belongs,
//! with a header [`traceparent`](https://www.w3.org/TR/trace-context/), is part of that trace.
//!
//! What is asked of the environment is [OpenTelemetry's own]; without an endpoint nothing is sent.
//!
//! [OpenTelemetry's own]: https://opentelemetry.io/docs/specs/otel/protocol/exporter/

use std::{env, io};

use axum::http::HeaderMap;
use opentelemetry::{
    propagation::{Extractor, TextMapPropagator},
    trace::TracerProvider,
};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{SdkTracerProvider, Tracer},
};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
use tracing_subscriber::registry::LookupSpan;

use crate::failure::Failure;

/// Each of them turns sending on.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// Sends spans in batches, from a thread of its own. Dropping it sends what is left, for some
/// seconds at most.
#[must_use = "what is left is sent when this is dropped"]
pub(super) struct Collector(SdkTracerProvider);

impl Collector {
    /// Nothing, if the environment names no endpoint.
    ///
    /// # Errors
    /// [`Failure::Machine`] for settings that the exporter does not take.
    pub(super) fn of_the_environment() -> Result<Option<Self>, Failure> {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        if !ENDPOINTS.into_iter().any(is_set) {
            return Ok(None);
        }
        let exporter = SpanExporter::builder().with_http().build();
        let exporter = exporter.map_err(|error| Failure::Machine {
            doing: "starting to send spans",
            source: io::Error::other(error),
        })?;
        let mut resource = Resource::builder();
        if !is_set("OTEL_SERVICE_NAME") {
            resource = resource.with_service_name("palisade");
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build());
        Ok(Some(Self(provider.build())))
    }

    /// What the subscriber of this process needs.
    pub(super) fn layer<S>(&self) -> OpenTelemetryLayer<S, Tracer>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer().with_tracer(self.0.tracer("palisade"))
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(error = %error, "some spans were not sent");
        }
    }
}

/// Makes a span part of the trace that a request names.
pub(crate) fn continue_trace(span: &Span, headers: &HeaderMap) {
    let parent = TraceContextPropagator::new().extract(&Headers(headers));
    // It fails if nobody listens to this span.
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
