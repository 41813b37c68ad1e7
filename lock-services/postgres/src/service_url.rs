//! The URL of a lock service.

use lock_core::{
    Error,
    backend::{
        ConnectOptions,
        support::{
            connecting::{Settings, invalid},
            database::{settings, take_connections},
            database_url,
        },
    },
};
use sqlx::postgres::PgConnectOptions;

/// The settings in the URL of a lock service.
pub(super) struct ServiceUrl {
    pub(super) settings: Settings,
    /// The address of the database itself, for the connection that listens.
    pub(super) listen: Option<PgConnectOptions>,
    /// The greatest number of connections, besides the one that listens.
    pub(super) connections: u32,
}

impl ServiceUrl {
    pub(super) fn read(options: &ConnectOptions) -> Result<Self, Error> {
        let mut settings = settings(options, "database")?;
        let listen = settings.take("listen")?;
        Ok(Self {
            connections: take_connections(&mut settings)?,
            listen: listen.map(|url| address(&url)).transpose()?,
            settings,
        })
    }

    /// The address of the database.
    pub(super) fn address(&self) -> Result<PgConnectOptions, Error> {
        address(&self.settings.url())
    }
}

fn address(url: &str) -> Result<PgConnectOptions, Error> {
    let schemes = ["postgres://", "postgresql://"];
    if !schemes.iter().any(|scheme| url.starts_with(scheme)) {
        return Err(invalid(
            "not a URL, such as postgres://user:password@host/database",
        ));
    }
    database_url::parse(url, PgConnectOptions::host)
}
