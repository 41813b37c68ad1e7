use std::{borrow::Cow, sync::Arc};

use lock_core::{
    Attempt, Capabilities, Error, Extension, Fairness, Fencing, FencingToken, Inspection, Listed,
    Operation, Released, ResourceName, Sequencer, Waking,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, ConnectOptions, Forced, Grant, LockBackend,
        RenewRequest, Renewed, Requests, Runtime,
        support::{OwnedTask, connecting::connect},
    },
};
use sqlx::{PgPool, postgres::PgConnectOptions};

use super::{
    KIND, acquire::Asking, client::Client, connections::Connections, listener::ListenAddress,
    service_url::ServiceUrl, tombstones, waiters::Waiters,
};

/// A lock service in PostgreSQL. Dropping it ends its tasks and, if it made the pool itself, closes
/// its connections.
#[derive(Debug)]
pub struct PostgresBackend {
    client: Arc<Client>,
    waiters: Arc<Waiters>,
    _forgetting: OwnedTask,
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
        to: impl Into<ConnectOptions>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let options = to.into();
        connect(KIND, async {
            let url = ServiceUrl::read(&options)?;
            let address = url.address()?;
            let presumed = address.clone();
            Self::start(
                Connections::to(address, &url, Arc::clone(&runtime)),
                presumed,
                url,
                runtime,
            )
            .await
        })
        .await
    }

    /// The same for the database of a pool, such as that of the fenced store, with connections of
    /// its own: renewals and releases would otherwise queue behind the transactions of the
    /// application. A URL in the options is [where](address_of) the pool connects to, or empty.
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
        options: impl Into<ConnectOptions>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let options = options.into();
        connect(KIND, async {
            let url = ServiceUrl::read(&options)?;
            match options.url() {
                "" => url.settings.none_left(OWN)?,
                _ => drop(url.address()?),
            }
            let presumed = pool.connect_options().as_ref().clone();
            Self::start(
                Connections::like(pool, &url, Arc::clone(&runtime)),
                presumed,
                url,
                runtime,
            )
            .await
        })
        .await
    }

    async fn start(
        connections: Connections,
        presumed: PgConnectOptions,
        url: ServiceUrl,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let listen = match url.listen {
            Some(address) => ListenAddress::direct(address),
            None => ListenAddress::perhaps_pooled(presumed, &*runtime),
        };
        let client = Arc::new(Client::connect(connections, &url.settings, runtime).await?);
        Ok(Self {
            waiters: Waiters::new(Arc::clone(&client), listen),
            _forgetting: tombstones::forget_every_minute(&client),
            client,
        })
    }
}

impl Drop for PostgresBackend {
    fn drop(&mut self) {
        self.waiters.stop();
    }
}

impl LockBackend for PostgresBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::BestEffort, Fairness::Fifo, Waking::Pushed)
            .counting(lock_core::TokenScale::Clock)
            .extended(Extension::ALL)
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.client.runtime)
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

    fn lease_name<'a>(&self, resource: &'a ResourceName) -> Cow<'a, str> {
        self.client.names.of(resource).into()
    }
}

/// The address of the database that a lock service has, for a pool to connect to.
///
/// # Errors
/// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput) says what is wrong in the URL
/// or a setting.
pub fn address_of(options: &ConnectOptions) -> Result<PgConnectOptions, Error> {
    let address = ServiceUrl::read(options).and_then(|url| url.address());
    address.map_err(|error| error.during(Operation::Connect, KIND))
}

/// The parameters of Postgres alone.
const OWN: &str = "listen, connections";
