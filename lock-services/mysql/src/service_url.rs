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
use sqlx::{ConnectOptions as _, mysql::MySqlConnectOptions};

const EXAMPLE: &str = "mysql://user:password@host/database";

/// The settings in the URL of a lock service.
pub(super) struct ServiceUrl {
    pub(super) settings: Settings,
    /// The greatest number of connections.
    pub(super) connections: u32,
}

impl ServiceUrl {
    pub(super) fn read(options: &ConnectOptions) -> Result<Self, Error> {
        let mut settings = settings(options, "database")?;
        Ok(Self {
            connections: take_connections(&mut settings)?,
            settings,
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

/// The same address, for connections whose settings this client sets itself. The driver's own log
/// has no statements, because a holder may be in a statement.
pub(super) fn with_settings_of_ours(
    address: MySqlConnectOptions,
) -> Result<MySqlConnectOptions, Error> {
    match address.get_database() {
        None | Some("") => Err(invalid(format!("no database is named, as in {EXAMPLE}"))),
        Some(_) => Ok(address.timezone(None).disable_statement_logging()),
    }
}
