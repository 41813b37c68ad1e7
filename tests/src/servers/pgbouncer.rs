use sqlx::{ConnectOptions, postgres::PgConnectOptions};

use super::{PostgresDatabase, start};
use crate::warden::{ServerKind, Warden};

/// A separate PgBouncer in front of the Postgres server of a database.
#[derive(Debug)]
pub struct PgBouncer {
    warden: Warden,
}

/// When a client gives the server's connection back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolMode {
    /// When it disconnects.
    Session,
    /// At the end of each transaction.
    Transaction,
}

impl PgBouncer {
    /// Starts one for all databases of this database's server.
    ///
    /// # Panics
    /// If `pgbouncer` is not installed.
    pub async fn start(database: &PostgresDatabase, mode: PoolMode) -> Self {
        Self::behind(database.url(), mode).await
    }

    /// Starts one whose way to the server is that of this URL: through a proxy, for example.
    ///
    /// # Panics
    /// If `pgbouncer` is not installed.
    pub async fn behind(url: &str, mode: PoolMode) -> Self {
        let mode = match mode {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
        };
        let arguments = vec![url.to_owned(), mode.to_owned()];
        let warden = start(ServerKind::PgBouncer, arguments).await;
        Self { warden }
    }

    /// The URL of a database through this PgBouncer.
    ///
    /// # Panics
    /// If the URL of the database is invalid.
    #[must_use]
    pub fn url(&self, database: &PostgresDatabase) -> String {
        let parse = |url: &str| {
            url.parse::<PgConnectOptions>()
                .unwrap_or_else(|error| panic!("the URL of a database: {error}"))
        };
        let way = parse(&self.warden.running().url);
        let database = parse(database.url());
        let url = database.host(way.get_host()).port(way.get_port());
        url.to_url_lossy().to_string()
    }
}
