use std::{io, time::Duration};

use axum::Router;
use fenced_store::FencedLocks;
use lock_core::LockManager;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    time::timeout,
};

use crate::{
    app::{App, Shared},
    connections::Connections,
    counted,
    edge::Edge,
    forgetting::Forgetting,
    health::Probe,
    idempotency::Idempotency,
    keys::KeyTable,
    limits::Limits,
    own_name::{HostNames, OwnNames},
    router::router,
    setup::Setup,
    time_limit::TimeLimit,
    tokens::Tokens,
};

/// The longest wait for the lock service when the gateway stops.
const DISCONNECT_TIME_MAX: Duration = Duration::from_secs(20);

/// A gateway to a lock service and a store.
#[derive(Debug)]
pub struct Gateway {
    locks: LockManager,
    tokens: Tokens,
    router: Router,
    has_operators: bool,
    closing: watch::Sender<bool>,
    limits: Limits,
    time_limit: TimeLimit,
    allowed_hosts: HostNames,
    metrics: Option<PrometheusHandle>,
    forgetting: Forgetting,
}

impl Gateway {
    /// A gateway to this lock service and this store. The database must have the tables of the
    /// store and the table of [`KeyTable`].
    pub fn new<DB: KeyTable>(protected: FencedLocks<DB>, setup: Setup) -> Self {
        let (closing, is_closing) = watch::channel(false);
        let locks = protected.locks().clone();
        let tokens = Tokens::new(setup.signing, locks.issuer());
        let time_limit = TimeLimit::new(setup.limits.request_time);
        let has_operators = setup.admin_token.is_some();
        let forgetting = Forgetting::new(protected.clone(), setup.forget_after);
        let router = router(App::new(Shared {
            protected,
            tokens: tokens.clone(),
            idempotency: Idempotency::new(setup.secret),
            metrics: setup.metrics.clone(),
            admin_token: setup.admin_token,
            is_closing,
            time_limit: time_limit.clone(),
            waiting: Semaphore::new(setup.limits.waiting),
            probe: Probe::default(),
        }));
        Self {
            locks,
            tokens,
            router,
            has_operators,
            closing,
            limits: setup.limits,
            time_limit,
            allowed_hosts: setup.allowed_hosts,
            metrics: setup.metrics,
            forgetting,
        }
    }

    /// Leases, the routes for operators, health and metrics: to be mounted at the root.
    ///
    /// The router does not limit connections and bodies, check names of hosts, or add ids of
    /// requests, because [`serve`](Self::serve) does that.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// The lock service.
    #[must_use]
    pub const fn locks(&self) -> &LockManager {
        &self.locks
    }

    /// A verifier for the tokens of this gateway.
    #[must_use]
    pub fn tokens(&self) -> Tokens {
        self.tokens.clone()
    }

    /// The time limit of requests. [`serve`](Self::serve) waits for the writes that run under this
    /// limit.
    #[must_use]
    pub fn time_limit(&self) -> TimeLimit {
        self.time_limit.clone()
    }

    /// Whether there are endpoints for operators.
    #[must_use]
    pub const fn has_operators(&self) -> bool {
        self.has_operators
    }

    /// Becomes true when the gateway is asked to stop: then long answers have to end.
    #[must_use]
    pub fn is_closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// Serves these routes, of which [`router`](Self::router) is one part, until `stop`. Then
    /// finishes the requests that are under way. A request that waits for a lease is refused. There
    /// is no wait for a client that has sent half a request. An answer that its client does not
    /// read in time is cut off.
    ///
    /// # Errors
    /// If the listener fails, or the requests under way do not end in time.
    ///
    /// # Cancel safety
    /// Cancel safe. All connections end, and requests under way get no answer.
    pub async fn serve(
        self,
        routes: Router,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let addr = listener.local_addr()?;
        let edge = Edge::new(routes, OwnNames::at(addr.ip(), self.allowed_hosts));
        let closing = async {
            stop.await;
            self.closing.send_replace(true);
        };
        let under_way = self.time_limit.under_way().clone();
        let connections = Connections::new(edge, self.limits, under_way);
        let served = tokio::select! {
            biased;
            served = connections.serve(listener, closing) => served,
            never = counted::upkeep(self.metrics) => match never {},
            never = self.forgetting.run() => match never {},
        };
        let disconnected = timeout(DISCONNECT_TIME_MAX, self.locks.shutdown()).await;
        if disconnected.is_err() {
            tracing::warn!("the lock service does not answer: some leases end only by their ttl");
        }
        served
    }
}
