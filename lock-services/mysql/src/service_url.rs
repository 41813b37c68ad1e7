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
use sqlx::{ConnectOptions as _, mysql::MySqlConnectOptions};

const EXAMPLE: &str = "mysql://user:password@host/database";

/// The settings in the URL of a lock service.
pub(super) struct ServiceUrl {
    pub(super) settings: Settings,
    /// The most connections.
    pub(super) connections: u32,
}

impl ServiceUrl {
    pub(super) fn read(options: &ConnectOptions) -> Result<Self, Error> {
        let bounds = Duration::from_millis(10)..=Duration::from_secs(10);
        let mut settings = options.read(Duration::from_secs(2), bounds)?;
        let connections = settings.take_number("connections")?.unwrap_or(8);
        if connections == 0 {
            return Err(invalid("at least one connection is needed"));
        }
        if settings.initial_token != InitialToken::Clock {
            let error = Error::not_applied(ErrorKind::Unsupported);
            return Err(error.because("tokens start at the clock of the database"));
        }
        Ok(Self {
            settings,
            connections,
        })
    }

    /// The address of the database.
    pub(super) fn address(&self) -> Result<MySqlConnectOptions, Error> {
        let url = self.settings.url();
        let schemes = ["mysql://", "mariadb://"];
        if !schemes.iter().any(|scheme| url.starts_with(scheme)) {
            return Err(invalid(format!("not a URL, such as {EXAMPLE}")));
        }
        with_settings_of_ours(database_url::parse(&url, MySqlConnectOptions::host)?)
    }
}

/// The same address, for connections that set their settings themselves. The driver's own log has
/// no statements, because a holder may be in one.
pub(super) fn with_settings_of_ours(
    address: MySqlConnectOptions,
) -> Result<MySqlConnectOptions, Error> {
    match address.get_database() {
        None | Some("") => Err(invalid(format!("no database is named, as in {EXAMPLE}"))),
        Some(_) => Ok(address.timezone(None).disable_statement_logging()),
    }
}
