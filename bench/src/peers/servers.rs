//! One server of each kind, which the libraries share.

use e2e::servers::{DatabaseServer, Etcd, Redis, ZooKeeper};

use super::libraries::Service;
use crate::error::BoxError;

pub(super) struct Servers {
    redis: Redis,
    postgres: DatabaseServer,
    etcd: Etcd,
    zookeeper: ZooKeeper,
}

impl Servers {
    pub(super) async fn start() -> Result<Self, BoxError> {
        Ok(Self {
            redis: Redis::start().await,
            postgres: postgres().await?,
            etcd: Etcd::start().await,
            // Sessions of 2 to 20 s.
            zookeeper: ZooKeeper::start_with(&["tickTime=1000"]).await,
        })
    }

    pub(super) fn url(&self, service: Service) -> String {
        match service {
            Service::Redis => self.redis.url().to_owned(),
            Service::Postgres => self.postgres.url().to_owned(),
            Service::Etcd => self.etcd.url(),
            Service::ZooKeeper => self.zookeeper.url(),
        }
    }
}

/// A Postgres that flushes its commits, with our schema.
pub(crate) async fn postgres() -> Result<DatabaseServer, BoxError> {
    let postgres = DatabaseServer::postgres(&["fsync=on", "synchronous_commit=on"]).await;
    let store = fenced_store::PgFencedStore::new(sqlx::PgPool::connect(postgres.url()).await?);
    store.migrate().await?;
    Ok(postgres)
}
