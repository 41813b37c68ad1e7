//! Spans for a collector of OpenTelemetry, by OTLP over HTTP.
//!
//! The environment has [OpenTelemetry's own] variables. Without an endpoint no span is sent.
//!
//! [OpenTelemetry's own]: https://opentelemetry.io/docs/specs/otel/protocol/exporter/

use std::{env, io};

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracerProvider, Tracer},
};
use tracing::Subscriber;
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::registry::LookupSpan;

use crate::failure::Failure;

/// The variables each of which switches sending on.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// Sends spans in batches, from a thread of its own. A drop sends the remaining spans, for a few
/// seconds at most.
#[must_use = "the remaining spans are sent when this is dropped"]
pub(super) struct Collector(SdkTracerProvider);

impl Collector {
    /// The collector of the environment; `None` if no endpoint is named.
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

    /// The layer for the subscriber of this process.
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
