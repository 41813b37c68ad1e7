use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Duration,
};

use axum::{Router, middleware::from_fn_with_state};
use fenced_store::FencedLocks;
use lock_core::{ErrorKind, InitialToken, Issuer, LockManager};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
    time::timeout,
};

use super::{
    Setup,
    app::{App, Shared},
    connections::Connections,
    edge::Edge,
    health::Probe,
    idempotency::Idempotency,
    limits::Limits,
    own_name::{HostNames, OwnNames},
    router::router,
    tokens::Tokens,
    under_way::UnderWay,
    wiretap,
};
use crate::{
    address::Address,
    failure::{Failure, with_sources},
    ledger::{self, AnyStore, Ledger},
    telemetry,
};

/// The address to listen on unless another one is named.
const USUAL_ADDR: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// How long the lock service may take to answer at the start.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How long the lock service may take to answer at the end.
const DISCONNECT_TIME_MAX: Duration = Duration::from_secs(20);

/// A gateway that is connected to its lock service and its store.
#[derive(Debug)]
pub(crate) struct Gateway {
    locks: LockManager,
    store_kind: &'static str,
    router: Router,
    closing: watch::Sender<bool>,
    limits: Limits,
    under_way: UnderWay,
    allowed_hosts: HostNames,
    metrics: Option<PrometheusHandle>,
}

impl Gateway {
    /// Connects to both and creates missing tables.
    ///
    /// # Errors
    /// [`Failure::Usage`] for an address that is invalid, [`Failure::Unreachable`] for a
    /// server that does not answer or does not let us in.
    pub(crate) async fn open(
        lock: &Address,
        store_address: &Address,
        setup: Setup,
    ) -> Result<Self, Failure> {
        let locks = connect("lock", lock, setup.issuer.as_ref(), setup.initial_token);
        let (locks, store) = if lock.is_postgres() {
            // The store makes the schema that both need.
            let store = ledger::open(store_address).await?;
            (locks.await?, store)
        } else {
            // A mistake in one address is told even if the other is down.
            (locks.await?, ledger::open(store_address).await?)
        };
        if let Some((id, balance)) = setup.first_account {
            store.open_account(id, balance).await?;
        }
        let (kind, is_one) = (store.kind(), lock == store_address);
        Ok(match store {
            AnyStore::Postgres(store) if is_one => {
                Self::over(FencedLocks::in_one_database(locks, store), kind, setup)
            }
            AnyStore::Postgres(store) => Self::over(FencedLocks::new(locks, store), kind, setup),
            AnyStore::Sqlite(store) => Self::over(FencedLocks::new(locks, store), kind, setup),
        })
    }

    fn over<DB: Ledger>(
        protected: FencedLocks<DB>,
        store_kind: &'static str,
        setup: Setup,
    ) -> Self {
        let (closing, is_closing) = watch::channel(false);
        let locks = protected.locks().clone();
        let app = App::new(Shared {
            protected,
            tokens: Tokens::new(setup.signing, locks.issuer()),
            idempotency: Idempotency::new(setup.secret),
            recorder: setup.recorder,
            metrics: setup.metrics,
            admin_token: setup.admin_token,
            unfenced: setup.unfenced,
            is_closing,
            time_limit: setup.limits.request_time,
            under_way: UnderWay::default(),
            waiting: Semaphore::new(setup.limits.waiting),
            probe: Probe::default(),
        });
        let (recorder, metrics) = (app.recorder.clone(), app.metrics.clone());
        let under_way = app.under_way.clone();
        let mut router = router(app);
        if let Some(recorder) = recorder {
            router = router.layer(from_fn_with_state(recorder, wiretap::take_down));
        }
        Self {
            locks,
            store_kind,
            router,
            closing,
            limits: setup.limits,
            under_way,
            allowed_hosts: setup.allowed_hosts,
            metrics,
        }
    }

    /// Serves these routes, too, which are told when the gateway is closing.
    pub(crate) fn with_routes(
        mut self,
        routes: impl FnOnce(watch::Receiver<bool>) -> Router,
    ) -> Self {
        let more = routes(self.closing.subscribe());
        self.router = self.router.merge(more);
        self
    }

    /// The kind of lock service, such as `redis`.
    pub(crate) fn lock_kind(&self) -> &'static str {
        self.locks.backend_kind()
    }

    /// The kind of store, such as `postgres`.
    pub(crate) const fn store_kind(&self) -> &'static str {
        self.store_kind
    }

    /// Serves until `stop`, then finishes what is under way. Requests that wait for a lease are
    /// sent away, and half a request is not waited for. An answer that its client does not read in
    /// time is cut off.
    ///
    /// # Errors
    /// If the requests under way do not end in time.
    pub(crate) async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Failure> {
        let Self {
            locks,
            router,
            closing,
            limits,
            under_way,
            allowed_hosts,
            metrics,
            ..
        } = self;
        let addr = listener.local_addr();
        let addr = addr.map_err(Failure::machine("finding the address"))?;
        let edge = Edge::new(router, OwnNames::at(addr.ip(), allowed_hosts));
        let closing = async {
            stop.await;
            closing.send_replace(true);
        };
        let connections = Connections::new(edge, limits, under_way);
        let served = tokio::select! {
            served = connections.serve(listener, closing) => served,
            never = telemetry::upkeep(metrics) => match never {},
        };
        if timeout(DISCONNECT_TIME_MAX, locks.shutdown())
            .await
            .is_err()
        {
            tracing::warn!("the lock service does not answer: some leases end by their ttl only");
        }
        served.map_err(Failure::machine("finishing the requests under way"))
    }
}

/// Takes an address to listen on: the usual one if none is named, or another port beside it if that
/// is in use.
///
/// # Errors
/// [`Failure::CannotListen`] if it is in use or not ours.
pub(crate) async fn listen(named: Option<SocketAddr>) -> Result<TcpListener, Failure> {
    let addr = named.unwrap_or(USUAL_ADDR);
    match TcpListener::bind(addr).await {
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::AddrInUse => {
            TcpListener::bind((addr.ip(), 0)).await
        }
        bound => bound,
    }
    .map_err(|source| Failure::CannotListen { addr, source })
}

/// Connects to the lock service that an option names. The issuer is what the store calls it, if not
/// by its kind; the initial token is where counters start that it does not have yet.
///
/// # Errors
/// [`Failure::Usage`] for an address that is invalid, [`Failure::Unreachable`] for a server
/// that does not answer or does not let us in.
pub(crate) async fn connect(
    option: &'static str,
    address: &Address,
    issuer: Option<&Issuer>,
    initial_token: InitialToken,
) -> Result<LockManager, Failure> {
    let mut connecting = palisade::connect(address.secret()).initial_token(initial_token);
    if let Some(issuer) = issuer {
        connecting = connecting.issuer(issuer.clone());
    }
    let unreachable = |why: String| Failure::Unreachable {
        role: "lock service",
        option,
        address: address.clone(),
        why,
    };
    match timeout(CONNECT_TIME_MAX, connecting).await {
        Ok(Ok(locks)) => Ok(locks),
        Ok(Err(error)) => Err(match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::Unsupported => {
                Failure::Usage(format!("--{option} {address}: {error}"))
            }
            _ => unreachable(with_sources(&error)),
        }),
        Err(_) => Err(unreachable(format!(
            "no answer within {CONNECT_TIME_MAX:?}"
        ))),
    }
}
