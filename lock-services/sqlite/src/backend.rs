use std::{borrow::Cow, sync::Arc};

use lock_core::{
    Attempt, Capabilities, Error, Extension, Fairness, Fencing, FencingToken, Inspection, Listed,
    Released, ResourceName, Sequencer, Waking,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, ConnectOptions, Forced, Grant, LockBackend,
        RenewRequest, Renewed, Requests, Runtime,
        support::{
            LeaseNames,
            connecting::{Settings, connect},
            waiters::Waiters,
        },
    },
};
use sqlx::sqlite::SqliteConnectOptions;

use super::{
    KIND,
    acquire::Asking,
    client::Client,
    file::{self, File},
    look::LookInFile,
};

/// A lock service in an SQLite file. Dropping it ends its task and closes its two connections.
#[derive(Debug)]
pub struct SqliteBackend {
    client: Arc<Client>,
    waiters: Arc<Waiters<LookInFile>>,
}

impl SqliteBackend {
    /// Opens the file, and makes the tables if they are missing.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput),
    /// [`ErrorKind::Unsupported`](lock_core::ErrorKind::Unsupported) if the file is on a network
    /// file system, [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable) if another
    /// process keeps the file or the disk is full, or
    /// [`ErrorKind::Refused`](lock_core::ErrorKind::Refused): the folder or a right is missing, or
    /// it is another file.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: the file is closed.
    pub async fn connect(
        to: impl Into<ConnectOptions>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let options = to.into();
        connect(KIND, async {
            let settings = file::settings(&options)?;
            let file = File::of_url(&settings.url())?;
            Self::start(file, &settings, runtime).await
        })
        .await
    }

    /// The same for the file of these options, such as those of the pool of a fenced store, over
    /// connections of its own. The URL of the other options is empty.
    ///
    /// # Errors
    /// See [`connect`](SqliteBackend::connect).
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn on(
        file: &SqliteConnectOptions,
        options: impl Into<ConnectOptions>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let options = options.into();
        connect(KIND, async {
            let settings = file::settings(&options)?;
            settings.none_left("")?;
            Self::start(File::of(file.clone())?, &settings, runtime).await
        })
        .await
    }

    async fn start(
        file: File,
        settings: &Settings,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let names = LeaseNames::new(&settings.prefix);
        let client = Client::connect(file, names, settings.response_timeout, runtime).await?;
        let look = LookInFile::new(Arc::clone(&client));
        Ok(Self {
            waiters: Waiters::new(look, client.tasks.clone()),
            client,
        })
    }
}

impl Drop for SqliteBackend {
    fn drop(&mut self) {
        self.waiters.stop();
    }
}

impl LockBackend for SqliteBackend {
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
        self.waiters.look_now();
        released
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let cancelled = self.client.cancel(attempt).await;
        self.waiters.look_now();
        cancelled
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        self.client.inspect(resource).await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        let released = self.client.release_hold(lease, attempt).await;
        self.waiters.look_now();
        released
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let forced = self.client.force_release(resource, token).await;
        self.waiters.look_now();
        forced
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
