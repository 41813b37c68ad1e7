use std::sync::Arc;

use lock_core::{
    Attempt, Capabilities, Error, Extension, Fairness, Fencing, FencingToken, Inspection, Listed,
    Released, ResourceName, Sequencer, Waking,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Clock, Forced, Grant, LockBackend, RenewRequest,
        Renewed,
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
    KIND, PostgresOptions, acquire, client::Client, connections::Connections,
    listener::ListenAddress, tombstones, waiters::Waiters,
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
            let (address, listen) = addresses(url, options.listen.as_deref())?;
            let connections = Connections::to(address, &options);
            Self::start(connections, listen, &options, clock).await
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
            let listen = match &options.listen {
                Some(url) => ListenAddress::direct(parse(url)?),
                None => ListenAddress::perhaps_pooled(pool.connect_options().as_ref().clone()),
            };
            let connections = Connections::like(pool, &options);
            Self::start(connections, listen, &options, clock).await
        })
        .await
    }

    async fn start(
        connections: Connections,
        listen: ListenAddress,
        options: &PostgresOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let client = Arc::new(Client::connect(connections, options.response_timeout, clock).await?);
        Ok(Self {
            waiters: Waiters::new(Arc::clone(&client), listen),
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

    async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        acquire::in_turn(&self.client, &self.waiters, request).await
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.client.renew(leases).await
    }

    async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        self.client.release(lease, true).await
    }

    async fn release_answered(&self, lease: &Sequencer, again: bool) -> Result<Released, Error> {
        let released = self.client.release(lease, false).await?;
        Ok(if again { Released::Released } else { released })
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
fn addresses(url: &str, listen: Option<&str>) -> Result<(PgConnectOptions, ListenAddress), Error> {
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
    let listen = match listen.or_else(|| Some(ours.first()?.1.as_str())) {
        Some(url) => ListenAddress::direct(parse(url)?),
        None => ListenAddress::perhaps_pooled(address.clone()),
    };
    Ok((address, listen))
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
