use std::sync::Arc;

use lock_core::{
    Error, Operation, Waking,
    backend::{
        ConnectOptions, Runtime,
        support::{
            OwnedTask,
            connecting::connect,
            database::{DatabaseService, InDatabase, Leases, forget_every_minute},
        },
    },
};
use sqlx::{PgPool, postgres::PgConnectOptions};

use super::{
    KIND, client::Client, connections::Connections, listener::ListenAddress,
    service_url::ServiceUrl,
};

/// A lock service in PostgreSQL. Dropping it ends its tasks and, if it made its pool itself, closes
/// the connections.
#[derive(Debug)]
pub struct PostgresBackend {
    service: DatabaseService<Client>,
    _forgetting: OwnedTask,
}

impl PostgresBackend {
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

    /// Connects to the database of a pool, such as the pool of the fenced store. The lock service
    /// makes connections of its own, because renewals and releases would otherwise queue behind the
    /// transactions of the application. The URL in the options is the [address](address_of) of the
    /// pool, or empty.
    ///
    /// The connections log in as those of the pool do, also after the settings of the pool have
    /// changed. The callbacks of the pool are not called.
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
        let client = Client::connect(connections, listen, &url.settings, runtime).await?;
        let client = Arc::new(client);
        Ok(Self {
            _forgetting: forget_every_minute(&client),
            service: DatabaseService::new(client),
        })
    }
}

impl InDatabase for PostgresBackend {
    const KIND: &'static str = KIND;
    const WAKING: Waking = Waking::Pushed;

    fn service(&self) -> &DatabaseService<impl Leases> {
        &self.service
    }
}

/// The address of a lock service's database, to which a pool can connect.
///
/// # Errors
/// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput) says what is wrong in the URL
/// or a setting.
pub fn address_of(options: &ConnectOptions) -> Result<PgConnectOptions, Error> {
    let address = ServiceUrl::read(options).and_then(|url| url.address());
    address.map_err(|error| error.during(Operation::Connect, KIND))
}

/// The parameters that only Postgres has.
const OWN: &str = "listen, connections";
