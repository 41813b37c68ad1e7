use std::time::Duration;

use fenced_http::signed::{KeyRing, Secret};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;

use crate::{AdminToken, HostNames, Limits};

/// The settings of a gateway. By default it has no metrics, forgets no marks, has no endpoints for
/// operators, and trusts its clients.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Setup {
    /// The keys that sign the tokens. Without them tokens are not signed.
    pub signing: Option<KeyRing>,
    /// The secret that several gateways share, so that they know each other's idempotency keys.
    pub secret: Option<watch::Receiver<Secret>>,
    /// The limits on requests and connections.
    pub limits: Limits,
    /// Names under which clients may reach it, besides the names of the machine. If there are none,
    /// a gateway that is not on a loopback address answers under every name.
    pub allowed_hosts: HostNames,
    /// The metrics that `/metrics` shows.
    pub metrics: Option<PrometheusHandle>,
    /// The secret that operators send. Without it there are no endpoints for operators.
    pub admin_token: Option<AdminToken>,
    /// The age, an hour or more, at which the gateway forgets the marks of idle resources while it
    /// [serves](crate::Gateway::serve). Without an age it forgets no mark.
    pub forget_after: Option<Duration>,
}
