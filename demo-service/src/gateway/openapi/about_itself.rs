use utoipa::openapi::{HttpMethod, PathItem};

use super::{
    endpoint::Endpoint,
    parts::{json, plain},
};
use crate::gateway::wire::ReadyBody;

const TAG: &str = "service";

/// `/healthz`
pub(super) fn health() -> PathItem {
    let health = Endpoint::new("health", TAG, "Whether the process is alive")
        .answers("200", plain("It is.", "text/plain"));
    PathItem::new(HttpMethod::Get, health.build())
}

/// `/readyz`
pub(super) fn ready() -> PathItem {
    let ready = Endpoint::new("ready", TAG, "Whether requests would get anywhere")
        .answers("200", json::<ReadyBody>("They would."))
        .answers(
            "503",
            json::<ReadyBody>("They would not: a balancer asks another gateway."),
        );
    PathItem::new(HttpMethod::Get, ready.build())
}

/// `/metrics`
pub(super) fn metrics() -> PathItem {
    let metrics = Endpoint::new("metrics", TAG, "What is counted, as Prometheus reads it")
        .answers("200", plain("The counters.", "text/plain"));
    PathItem::new(HttpMethod::Get, metrics.build())
}

/// `/openapi.json`
pub(super) fn openapi() -> PathItem {
    let openapi = Endpoint::new("openapi", TAG, "This document")
        .answers("200", plain("The document.", "application/json"));
    PathItem::new(HttpMethod::Get, openapi.build())
}
