use fenced_http::signed::{KeyRing, Secret};
use lock_core::{InitialToken, Issuer};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;

use super::{AdminToken, HostNames, Limits};
use crate::events::Recorder;

/// What a gateway is made of. The default is one that nobody watches and that trusts its clients.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    /// What the store calls the lock service, if not by its kind.
    pub(crate) issuer: Option<Issuer>,
    /// Where counters start that the lock service does not have yet.
    pub(crate) initial_token: InitialToken,
    /// Signs the tokens, if there is one.
    pub(crate) signing: Option<KeyRing>,
    /// Shared by gateways that are to know each other's idempotency keys.
    pub(crate) secret: Option<watch::Receiver<Secret>>,
    pub(crate) limits: Limits,
    /// An account that is opened with this balance unless it is there already.
    pub(crate) first_account: Option<(&'static str, i64)>,
    /// Names under which it may be asked, besides those of the machine. Without any, one that is
    /// not on a loopback address may be asked under every name.
    pub(crate) allowed_hosts: HostNames,
    /// Takes down what clients of the scenario do.
    pub(crate) recorder: Option<Recorder>,
    /// What `/metrics` shows.
    pub(crate) metrics: Option<PrometheusHandle>,
    /// What operators have to show; without it there is nothing for them.
    pub(crate) admin_token: Option<AdminToken>,
    /// Whether every account has its unfenced twin, and not only those that the recorder stages.
    pub(crate) unfenced: bool,
}
