use std::sync::Arc;

use lock_core::{
    Attempt, Capabilities, Error, Extension, Fairness, Fencing, FencingToken, Inspection, Listed,
    Released, ResourceName, Sequencer, Waking,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Clock, Forced, Grant, LockBackend, RenewRequest,
        Renewed, Requests,
        support::{
            connecting::{connect, invalid},
            database_url,
        },
    },
};
use sqlx::{PgPool, postgres::PgConnectOptions};
use tokio::task::AbortHandle;
use url::form_urlencoded;

use super::{
    KIND, PostgresOptions, acquire::Asking, client::Client, connections::Connections,
    listener::Ear, tombstones, waiters::Waiters,
};

/// A lock service in PostgreSQL. Dropping it ends its tasks and, if it made the pool itself, closes
/// its connections.
#[derive(Debug)]
pub struct PostgresBackend {
    client: Arc<Client>,
    waiters: Arc<Waiters>,
    forgetting: AbortHandle,
}

impl PostgresBackend {
    /// Connects, and checks that the database has the schema.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput),
    /// [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable) if the database does not
    /// answer in time, or [`ErrorKind::Refused`](lock_core::ErrorKind::Refused): the login, a right
    /// or the schema is missing.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: connections are closed.
    pub async fn connect(
        url: &str,
        options: PostgresOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        connect(KIND, async {
            options.check()?;
            let (address, ear) = addresses(url, options.listen.as_deref())?;
            let connections = Connections::to(address, &options);
            Self::start(connections, ear, &options, clock).await
        })
        .await
    }

    /// The same for the database of a pool, such as that of the fenced store, with connections of
    /// its own, as many as [`PostgresOptions::connections`] at most: renewals and releases would
    /// otherwise queue behind the transactions of the application.
    ///
    /// They log in as those of the pool do, also after its settings have changed; its callbacks are
    /// not called.
    ///
    /// # Errors
    /// See [`connect`](PostgresBackend::connect).
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn on(
        pool: PgPool,
        options: PostgresOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        connect(KIND, async {
            options.check()?;
            let ear = match &options.listen {
                Some(url) => Ear::given(parse(url)?),
                None => Ear::presumed(pool.connect_options().as_ref().clone()),
            };
            let connections = Connections::like(pool, &options);
            Self::start(connections, ear, &options, clock).await
        })
        .await
    }

    async fn start(
        connections: Connections,
        ear: Ear,
        options: &PostgresOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let client = Arc::new(Client::connect(connections, options.response_timeout, clock).await?);
        Ok(Self {
            waiters: Waiters::new(Arc::clone(&client), ear),
            forgetting: tombstones::forget_every_minute(&client),
            client,
        })
    }
}

impl Drop for PostgresBackend {
    fn drop(&mut self) {
        self.forgetting.abort();
        self.waiters.stop();
    }
}

impl LockBackend for PostgresBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::BestEffort, Fairness::Fifo, Waking::Pushed)
            .extended(Extension::ALL)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.client.clock)
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        Asking::new(&self.client, &self.waiters, request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.client.renew(leases).await
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        self.client.release(lease, tombstone).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.client.cancel(attempt).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        self.client.inspect(resource).await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        self.client.release_hold(lease, attempt).await
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        self.client.force_release(resource, token).await
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        self.client.list().await
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        self.client.acquire_together(requests).await
    }
}

/// The address of the pool, and where to listen.
fn addresses(url: &str, listen: Option<&str>) -> Result<(PgConnectOptions, Ear), Error> {
    let (server, query) = url.split_once('?').unwrap_or((url, ""));
    let (ours, others): (Vec<_>, Vec<_>) = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .partition(|(name, _)| name == "listen");
    let others = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(others)
        .finish();
    let address = parse(&match &*others {
        "" => server.to_owned(),
        others => format!("{server}?{others}"),
    })?;
    let ear = match listen.or_else(|| Some(ours.first()?.1.as_str())) {
        Some(url) => Ear::given(parse(url)?),
        None => Ear::presumed(address.clone()),
    };
    Ok((address, ear))
}

fn parse(url: &str) -> Result<PgConnectOptions, Error> {
    if !["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| url.starts_with(scheme))
    {
        return Err(invalid(
            "not a URL, such as postgres://user:password@host/database",
        ));
    }
    database_url::parse(url, PgConnectOptions::host)
}
