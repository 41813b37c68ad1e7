use std::fs;

use super::{ClockOffset, owned::Owned};
use crate::{
    wall_clock,
    warden::{Order, Running, ServerKind},
};

/// A database server for one test, which may kill it.
///
/// Dropping it ends the server and returns when it is gone.
#[derive(Debug)]
pub struct DatabaseServer {
    url: String,
    server: Owned,
}

impl DatabaseServer {
    /// Starts a Postgres; it accepts connections when this returns. Settings look like
    /// `log_statement=all`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn postgres(settings: &[&str]) -> Self {
        Self::start(ServerKind::Postgres, None, settings).await
    }

    /// Starts a Postgres with a wall clock of its own for [`set_clock`](Self::set_clock).
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn postgres_with_own_clock() -> Self {
        Self::start(ServerKind::PostgresWithOwnClock, None, &[]).await
    }

    /// Starts a MariaDB.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn mariadb() -> Self {
        Self::start(ServerKind::MariaDb, None, &[]).await
    }

    /// Starts a MySQL.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn mysql() -> Self {
        Self::start(ServerKind::MySql, None, &[]).await
    }

    /// Starts a MariaDB or a MySQL with these options, such as `--sysdate-is-now`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn mysql_with(kind: ServerKind, options: &[&str]) -> Self {
        let options = options.iter().map(|option| (*option).to_owned());
        let server = Owned::start(kind, options.collect()).await;
        let url = server.running().url;
        Self { url, server }
    }

    /// A second Postgres that begins with all the present data of this one.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn copy(&self) -> Self {
        let origin = format!("--copy-of={}", self.url);
        Self::start(ServerKind::Postgres, Some(origin), &[]).await
    }

    /// A Postgres that replicates this one, and can be read.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn standby(&self) -> Self {
        let origin = format!("--standby-of={}", self.url);
        Self::start(ServerKind::Postgres, Some(origin), &[]).await
    }

    async fn start(kind: ServerKind, origin: Option<String>, settings: &[&str]) -> Self {
        let settings = settings.iter().flat_map(|setting| ["-c", setting]);
        let arguments = origin.into_iter().chain(settings.map(String::from));
        let server = Owned::start(kind, arguments.collect()).await;
        let url = server.running().url;
        Self { url, server }
    }

    /// The URL of a database of the server, with a user who has all rights. It stays the same
    /// across restarts.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// All output of the server so far.
    ///
    /// # Panics
    /// If that cannot be read.
    pub fn log(&self) -> String {
        let log = self.server.running().dir.join(Running::LOG);
        let read = fs::read(&log).unwrap_or_else(|error| panic!("cannot read the log: {error}"));
        String::from_utf8_lossy(&read).into_owned()
    }

    /// Sends SIGKILL to all processes of the server.
    ///
    /// # Panics
    /// If that fails.
    pub async fn kill(&self) {
        self.server.order(Order::Kill).await;
    }

    /// An immediate shutdown: it loses everything that is not in its write-ahead log.
    ///
    /// # Panics
    /// If that fails.
    pub async fn stop_immediately(&self) {
        self.server.order(Order::Stop).await;
    }

    /// A fast shutdown of Postgres: it ends all sessions, and everything is saved.
    ///
    /// # Panics
    /// If that fails.
    pub async fn shut_down(&self) {
        self.server.order(Order::ShutDown).await;
    }

    /// Makes the server's wall clock jump, so that it is off by this much.
    ///
    /// # Panics
    /// If the server has no clock of its own.
    pub fn set_clock(&self, by: ClockOffset) {
        wall_clock::set(&self.server.running().dir, by)
            .unwrap_or_else(|error| panic!("cannot move the clock of {}: {error}", self.url));
    }

    /// Starts the server again after it was killed or stopped, with all its stored data.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start_again(&self) {
        self.server.order(Order::Start).await;
    }
}
