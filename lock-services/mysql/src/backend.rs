use sqlx::{MySqlPool, mysql::MySqlConnectOptions};
use std::{borrow::Cow, sync::Arc};

use super::{
    KIND,
    acquire::Asking,
    client::Client,
    connections::Connections,
    looking::{LookAsClient, forget_every_minute},
    service_url::{ServiceUrl, with_settings_of_ours},
};
use lock_core::{
    Attempt, Capabilities, Error, Extension, Fairness, Fencing, FencingToken, Inspection, Listed,
    Released, ResourceName, Sequencer, Waking,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, ConnectOptions, Forced, Grant, LockBackend,
        RenewRequest, Renewed, Requests, Runtime,
        support::{OwnedTask, connecting::connect, waiters::Waiters},
    },
};

/// A lock service in MySQL or MariaDB. Dropping it ends its tasks and closes its connections.
#[derive(Debug)]
pub struct MySqlBackend {
    client: Arc<Client>,
    waiters: Arc<Waiters<LookAsClient>>,
    _forgetting: OwnedTask,
}

impl MySqlBackend {
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
            Self::start(url.address()?, url, runtime).await
        })
        .await
    }

    /// The same for the database of a pool, such as that of the fenced store, with connections of
    /// its own: renewals and releases would otherwise queue behind the transactions of the
    /// application. They log in as those of the pool do now. A URL in the options is empty.
    ///
    /// # Errors
    /// See [`connect`](MySqlBackend::connect).
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn on(
        pool: &MySqlPool,
        options: impl Into<ConnectOptions>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let options = options.into();
        connect(KIND, async {
            let url = ServiceUrl::read(&options)?;
            url.settings.none_left("connections")?;
            let address = with_settings_of_ours(pool.connect_options().as_ref().clone())?;
            Self::start(address, url, runtime).await
        })
        .await
    }

    async fn start(
        address: MySqlConnectOptions,
        url: ServiceUrl,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let connections = Connections::to(address, &url, Arc::clone(&runtime));
        let client = Client::connect(connections, &url.settings, runtime).await?;
        let client = Arc::new(client);
        Ok(Self {
            waiters: Waiters::new(LookAsClient::new(Arc::clone(&client)), client.tasks.clone()),
            _forgetting: forget_every_minute(&client),
            client,
        })
    }
}

impl Drop for MySqlBackend {
    fn drop(&mut self) {
        self.waiters.stop();
    }
}

impl LockBackend for MySqlBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::BestEffort, Fairness::Fifo, Waking::Polled)
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
        let released = self.client.release(lease, tombstone).await;
        // The next in the queue may be one of ours.
        self.waiters.look_now();
        released
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
