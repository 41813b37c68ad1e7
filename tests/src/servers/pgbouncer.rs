use sqlx::{ConnectOptions, postgres::PgConnectOptions};

use super::{PostgresDatabase, owned::Owned};
use crate::warden::{Order, ServerKind};

/// A separate PgBouncer in front of the Postgres server of a database.
#[derive(Debug)]
pub struct PgBouncer {
    url: String,
    server: Owned,
}

/// When a client gives the server's connection back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// When it disconnects.
    Session,
    /// At the end of each transaction.
    Transaction,
}

impl PgBouncer {
    /// Starts a PgBouncer for all databases of this database's server.
    ///
    /// # Panics
    /// If `pgbouncer` is not installed.
    pub async fn start(database: &PostgresDatabase, mode: PoolMode) -> Self {
        Self::start_with(database, mode, &[]).await
    }

    /// Starts a PgBouncer with settings, such as `default_pool_size = 2`.
    ///
    /// # Panics
    /// If `pgbouncer` is not installed.
    pub async fn start_with(
        database: &PostgresDatabase,
        mode: PoolMode,
        settings: &[&str],
    ) -> Self {
        Self::to(database.url(), mode, settings).await
    }

    /// Starts a PgBouncer that reaches the server at this URL: through a proxy, for example.
    ///
    /// # Panics
    /// If `pgbouncer` is not installed.
    pub async fn behind(url: &str, mode: PoolMode) -> Self {
        Self::to(url, mode, &[]).await
    }

    async fn to(url: &str, mode: PoolMode, settings: &[&str]) -> Self {
        let mode = match mode {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
        };
        let arguments = [&[url, mode], settings].concat();
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        let server = Owned::start(ServerKind::PgBouncer, arguments).await;
        let url = server.running().url;
        Self { url, server }
    }

    /// The URL of a database through this PgBouncer.
    ///
    /// # Panics
    /// If the URL of the database is invalid.
    pub fn url(&self, database: &PostgresDatabase) -> String {
        self.at(database.url())
    }

    /// The URL, through this PgBouncer, of a database that has this URL.
    ///
    /// # Panics
    /// If the URL is invalid.
    pub fn at(&self, database: &str) -> String {
        let parse = |url: &str| {
            url.parse::<PgConnectOptions>()
                .unwrap_or_else(|error| panic!("the URL of a database: {error}"))
        };
        let way = parse(&self.url);
        let database = parse(database);
        let url = database.host(way.get_host()).port(way.get_port());
        url.to_url_lossy().to_string()
    }

    /// Kills it, and starts it again at the same address.
    ///
    /// # Panics
    /// If that fails.
    pub async fn restart(&self) {
        self.server.order(Order::Kill).await;
        self.server.order(Order::Start).await;
    }
}
