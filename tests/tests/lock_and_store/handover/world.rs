use std::{any::Any, sync::Mutex};

use e2e::servers::{Etcd, PostgresDatabase, Redis, RedlockServers, ZooKeeper, postgres_database};
use fenced_store::{FencedLocks, FencedStore, PgFencedLocks, PgFencedStore};
use lock_core::{Issuer, LockManager, Ttl};
use sqlx::{PgPool, Postgres};

/// A lock service, and its name in the store.
pub(crate) struct Service {
    pub(crate) name: &'static str,
    url: String,
    servers: Mutex<Option<Box<dyn Any + Send + Sync>>>,
}

impl Service {
    pub(crate) async fn redis(name: &'static str) -> Self {
        let server = Redis::start().await;
        Self::of(name, server.url().to_owned(), server)
    }

    /// A Redis whose clients may not count: it answers, but cannot grant.
    pub(crate) async fn redis_that_cannot_grant(name: &'static str) -> Self {
        let server = Redis::start().await;
        let url = server.allow_documented("-incrby").await;
        Self::of(name, url, server)
    }

    pub(crate) async fn redlock(name: &'static str) -> Self {
        Self::redlock_for(name, Ttl::secs(60)).await
    }

    /// Redlock for leases of at most this length.
    pub(crate) async fn redlock_for(name: &'static str, longest: Ttl) -> Self {
        let servers = RedlockServers::start(3).await;
        servers.provision(longest).await.unwrap();
        Self::of(name, servers.url(), servers)
    }

    /// Redlock with nodes that were never provisioned.
    pub(crate) async fn new_redlock(name: &'static str) -> Self {
        let servers = RedlockServers::start(3).await;
        Self::of(name, servers.url(), servers)
    }

    pub(crate) async fn etcd(name: &'static str) -> Self {
        let server = Etcd::start().await;
        Self::of(name, server.url(), server)
    }

    pub(crate) async fn zookeeper(name: &'static str) -> Self {
        let server = ZooKeeper::start().await;
        Self::of(name, server.url(), server)
    }

    fn of(name: &'static str, url: String, servers: impl Any + Send + Sync) -> Self {
        Self {
            name,
            url,
            servers: Mutex::new(Some(Box::new(servers))),
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A lock manager of the service for a client.
    pub(crate) async fn locks(&self) -> LockManager {
        palisade::connect(self.url())
            .issuer(Issuer::new(self.name).unwrap())
            .await
            .unwrap()
    }

    /// Stops the servers for ever.
    pub(crate) fn stop(&self) {
        drop(self.servers.lock().unwrap().take());
    }
}

/// Two lock services, and a store that accepts tokens of neither yet.
pub(crate) struct World {
    pub(crate) old: Service,
    pub(crate) new: Service,
    pub(crate) store: PgFencedStore,
    database: PostgresDatabase,
}

impl World {
    /// A handover from one Redis to another.
    pub(crate) async fn start() -> Self {
        Self::moving_to(Service::redis("new").await).await
    }

    /// A handover from a Redis to another lock service.
    pub(crate) async fn moving_to(new: Service) -> Self {
        Self::in_database(postgres_database().await, new).await
    }

    /// A handover from a Redis to the database of the store.
    pub(crate) async fn moving_to_its_database() -> Self {
        let database = postgres_database().await;
        let new = Service::of("new", database.url().to_owned(), ());
        Self::in_database(database, new).await
    }

    async fn in_database(database: PostgresDatabase, new: Service) -> Self {
        let old = Service::redis("old").await;
        let store = FencedStore::new(PgPool::connect(database.url()).await.unwrap());
        store.migrate().await.unwrap();
        Self {
            old,
            new,
            store,
            database,
        }
    }

    pub(crate) fn store_url(&self) -> &str {
        self.database.url()
    }

    pub(crate) async fn protected(&self, service: &Service) -> FencedLocks<Postgres> {
        let (locks, store) = (service.locks().await, self.store.clone());
        if service.url() == self.store_url() {
            PgFencedLocks::in_one_database(locks, store)
        } else {
            PgFencedLocks::new(locks, store)
        }
    }
}
