//! The URL of a lock service.

use std::time::Duration;

use lock_core::{
    Error, ErrorKind, InitialToken,
    backend::{
        ConnectOptions,
        support::{
            connecting::{Settings, invalid},
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
    /// The most connections, besides the one that listens.
    pub(super) connections: u32,
}

impl ServiceUrl {
    pub(super) fn read(options: &ConnectOptions) -> Result<Self, Error> {
        let bounds = Duration::from_millis(10)..=Duration::from_secs(10);
        let mut settings = options.read(Duration::from_secs(2), bounds)?;
        let listen = settings.take("listen")?;
        let connections = settings.take_number("connections")?.unwrap_or(8);
        if connections == 0 {
            return Err(invalid("at least one connection is needed"));
        }
        if settings.initial_token != InitialToken::Clock {
            let error = Error::not_applied(ErrorKind::Unsupported);
            return Err(error.because("tokens start at the clock of the database"));
        }
        Ok(Self {
            listen: listen.map(|url| address(&url)).transpose()?,
            connections,
            settings,
        })
    }

    /// The address of the database.
    pub(super) fn address(&self) -> Result<PgConnectOptions, Error> {
        address(&self.settings.url())
    }
}

fn address(url: &str) -> Result<PgConnectOptions, Error> {
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
