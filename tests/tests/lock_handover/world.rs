use e2e::servers::{PostgresDatabase, Redis, postgres_database};
use fenced_store::{FencedStore, PgFencedStore, Protected};
use lock_core::{Issuer, LockManager};
use sqlx::{PgPool, Postgres};

/// A lock service, and what the store calls it.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: &'static str,
    server: Redis,
}

impl Service {
    pub(crate) async fn start(name: &'static str) -> Self {
        let server = Redis::start().await;
        Self { name, server }
    }

    pub(crate) fn url(&self) -> &str {
        self.server.url()
    }

    /// As a client of the service sees it.
    pub(crate) async fn locks(&self) -> LockManager {
        let builder = LockManager::builder().issuer(Issuer::new(self.name).unwrap());
        builder.connect(self.url()).await.unwrap()
    }
}

/// Two lock services and a store that takes tokens of none yet.
pub(crate) struct World {
    pub(crate) old: Service,
    pub(crate) new: Service,
    pub(crate) store: PgFencedStore,
    database: PostgresDatabase,
}

impl World {
    pub(crate) async fn start() -> Self {
        let database = postgres_database().await;
        let store = FencedStore::new(PgPool::connect(database.url()).await.unwrap());
        store.migrate().await.unwrap();
        Self {
            old: Service::start("old").await,
            new: Service::start("new").await,
            store,
            database,
        }
    }

    pub(crate) fn store_url(&self) -> &str {
        self.database.url()
    }

    pub(crate) async fn protected(&self, service: &Service) -> Protected<Postgres> {
        Protected::new(service.locks().await, self.store.clone())
    }
}
