use std::sync::Arc;

use lock_core::{
    Error, Waking,
    backend::{
        ConnectOptions, Runtime,
        support::{
            connecting::{Settings, connect},
            database::{DatabaseService, InDatabase, Leases, settings},
        },
    },
};
use sqlx::sqlite::SqliteConnectOptions;

use super::{KIND, client::Client, file::File};

/// A lock service in an SQLite file. Dropping it ends its task and closes its two connections.
#[derive(Debug)]
pub struct SqliteBackend(DatabaseService<Client>);

impl SqliteBackend {
    /// Opens the file, and makes the tables if they are missing.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput),
    /// [`ErrorKind::Unsupported`](lock_core::ErrorKind::Unsupported) if the file is on a network
    /// file system, [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable) if another
    /// process keeps the file locked or the disk is full, or
    /// [`ErrorKind::Refused`](lock_core::ErrorKind::Refused) if the folder or a right is missing,
    /// or if the file is not an SQLite database.
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
            let settings = settings(&options, "host")?;
            let file = File::of_url(&settings.url())?;
            Self::start(file, &settings, runtime).await
        })
        .await
    }

    /// Opens the file of these options, such as the options of the pool of a fenced store. The lock
    /// service makes connections of its own. Leave the URL in the other options empty.
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
            let settings = settings(&options, "host")?;
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
        let client = Client::connect(file, settings, runtime).await?;
        Ok(Self(DatabaseService::new(Arc::new(client))))
    }
}

impl InDatabase for SqliteBackend {
    const KIND: &'static str = KIND;
    const WAKING: Waking = Waking::Polled;

    fn service(&self) -> &DatabaseService<impl Leases> {
        &self.0
    }
}
