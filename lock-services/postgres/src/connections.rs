use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{
    Error,
    backend::{
        Runtime,
        support::{database, lock},
    },
};
use sqlx::{
    ConnectOptions, PgPool, Postgres,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{
    error::{is_refusal_to_connect, not_connected},
    service_url::ServiceUrl,
};

/// Connections that only the lock service uses, because renewals and releases would otherwise queue
/// behind the transactions of the application. They are made when they are needed.
#[derive(Clone)]
pub(super) struct Connections {
    pool: PgPool,
    like: Option<Like>,
    runtime: Arc<dyn Runtime>,
}

/// The pool of the application, whose login may change, and the settings that were read last.
#[derive(Clone)]
struct Like {
    pool: PgPool,
    seen: Arc<Mutex<Arc<PgConnectOptions>>>,
}

impl Connections {
    pub(super) fn to(
        address: PgConnectOptions,
        url: &ServiceUrl,
        runtime: Arc<dyn Runtime>,
    ) -> Self {
        let pool = PgPoolOptions::new()
            .max_connections(url.connections)
            .acquire_timeout(url.settings.response_timeout)
            .connect_lazy_with(address.disable_statement_logging());
        Self {
            pool,
            like: None,
            runtime,
        }
    }

    /// Connections to the same database as this pool, with the login that the pool has when a
    /// connection is made.
    pub(super) fn like(pool: PgPool, url: &ServiceUrl, runtime: Arc<dyn Runtime>) -> Self {
        let settings = pool.connect_options();
        let own = Self::to(settings.as_ref().clone(), url, runtime);
        let seen = Arc::new(Mutex::new(settings));
        let like = Some(Like { pool, seen });
        Self { like, ..own }
    }

    pub(super) fn address(&self) -> Arc<PgConnectOptions> {
        self.pool.connect_options()
    }

    /// Takes a connection. An idle connection is not checked, whatever the pool's own setting. If
    /// it was lost, the request fails, and is sent again, as each request may be.
    pub(super) async fn take(&self, timeout: Duration) -> Result<PoolConnection<Postgres>, Error> {
        if let Some(idle) = self.pool.try_acquire() {
            return Ok(idle);
        }
        self.follow();
        let pooled = self.pool.acquire();
        let taken = database::take(&*self.runtime, timeout, pooled, self.refusal()).await;
        let taken = taken.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        taken.map_err(not_connected)
    }

    /// The reason why the server takes no connections. `None` if it takes them.
    async fn refusal(&self) -> Option<sqlx::Error> {
        let error = self.address().connect().await.err()?;
        is_refusal_to_connect(&error).then_some(error)
    }

    fn follow(&self) {
        let Some(Like { pool, seen }) = &self.like else {
            return;
        };
        let (settings, mut seen) = (pool.connect_options(), lock(seen));
        if !Arc::ptr_eq(&settings, &seen) {
            let own = settings.as_ref().clone().disable_statement_logging();
            self.pool.set_connect_options(own);
            *seen = settings;
        }
    }
}
