use std::time::Duration;

use fenced_http::signed::{KeyRing, Secret};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;

use crate::{AdminToken, HostNames, Limits};

/// The parts of a gateway. The default counts nothing, forgets nothing, has no operators, and
/// trusts its clients.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Setup {
    /// Signs the tokens, if there is one.
    pub signing: Option<KeyRing>,
    /// Shared by gateways that are to know each other's idempotency keys.
    pub secret: Option<watch::Receiver<Secret>>,
    /// How much it takes on at once, and for how long.
    pub limits: Limits,
    /// Names under which it may be asked, besides those of the machine. Without any, one that is
    /// not on a loopback address may be asked under every name.
    pub allowed_hosts: HostNames,
    /// The metrics that `/metrics` shows.
    pub metrics: Option<PrometheusHandle>,
    /// The secret that operators show; without it they have no endpoints.
    pub admin_token: Option<AdminToken>,
    /// The age, an hour or more, at which it forgets the marks of idle resources while it
    /// [serves](crate::Gateway::serve); without it, it forgets none.
    pub forget_after: Option<Duration>,
}
