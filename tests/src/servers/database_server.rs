use std::{
    fs, io,
    sync::{Arc, Mutex, PoisonError},
};

use super::{blocking, start};
use crate::warden::{Order, Running, ServerKind, Warden};

/// A database server for one test, which may kill it.
///
/// Dropping it ends the server and returns when it is gone.
#[derive(Debug)]
pub struct DatabaseServer {
    url: String,
    warden: Arc<Mutex<Warden>>,
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

    /// Starts a MariaDB.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn mariadb() -> Self {
        Self::start(ServerKind::MariaDb, None, &[]).await
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
        let warden = start(kind, arguments.collect()).await;
        Self {
            url: warden.running().url.clone(),
            warden: Arc::new(Mutex::new(warden)),
        }
    }

    /// The URL of a database in it, by a user with all rights. It stays the same across restarts.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// All output of the server so far.
    ///
    /// # Panics
    /// If that cannot be read.
    #[must_use]
    pub fn log(&self) -> String {
        let log = {
            let warden = self.warden.lock().unwrap_or_else(PoisonError::into_inner);
            warden.running().dir.join(Running::LOG)
        };
        let read = fs::read(&log).unwrap_or_else(|error| panic!("cannot read the log: {error}"));
        String::from_utf8_lossy(&read).into_owned()
    }

    /// Sends SIGKILL to all its processes.
    ///
    /// # Panics
    /// If that fails.
    pub async fn kill(&self) {
        self.order(Order::Kill).await;
    }

    /// An immediate shutdown: it loses everything that is not in its write-ahead log.
    ///
    /// # Panics
    /// If that fails.
    pub async fn stop_immediately(&self) {
        self.order(Order::Stop).await;
    }

    /// Starts it again after it was killed or stopped, with all its stored data.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start_again(&self) {
        self.order(Order::Start).await;
    }

    async fn order(&self, order: Order) {
        let warden = Arc::clone(&self.warden);
        let done: io::Result<()> = blocking(move || {
            let mut warden = warden.lock().unwrap_or_else(PoisonError::into_inner);
            warden.order(order)
        })
        .await;
        done.unwrap_or_else(|error| panic!("cannot {order:?} the server at {}: {error}", self.url));
    }
}
