use std::sync::Arc;

use lock_core::{
    Error, Waking,
    backend::{
        ConnectOptions, Runtime,
        support::{
            OwnedTask,
            connecting::connect,
            database::{DatabaseService, InDatabase, Leases, forget_every_minute},
        },
    },
};
use sqlx::{MySqlPool, mysql::MySqlConnectOptions};

use super::{
    KIND,
    client::Client,
    connections::Connections,
    service_url::{ServiceUrl, with_settings_of_ours},
};

/// A lock service in MySQL or MariaDB. Dropping it ends its tasks and closes its connections.
#[derive(Debug)]
pub struct MySqlBackend {
    service: DatabaseService<Client>,
    _forgetting: OwnedTask,
}

impl MySqlBackend {
    /// Connects, and checks that the database has the schema.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput),
    /// [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable) if the database does not
    /// answer in time, or [`ErrorKind::Refused`](lock_core::ErrorKind::Refused) if the login fails,
    /// or a right or the schema is missing.
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

    /// Connects to the database of a pool, such as the pool of the fenced store. The lock service
    /// makes connections of its own, because renewals and releases would otherwise queue behind the
    /// transactions of the application. Its connections log in as those of the pool do now. Leave
    /// the URL in the options empty.
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
            _forgetting: forget_every_minute(&client),
            service: DatabaseService::new(client),
        })
    }
}

impl InDatabase for MySqlBackend {
    const KIND: &'static str = KIND;
    const WAKING: Waking = Waking::Polled;

    fn service(&self) -> &DatabaseService<impl Leases> {
        &self.service
    }
}
