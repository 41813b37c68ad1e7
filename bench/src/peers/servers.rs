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
        let postgres = DatabaseServer::postgres(&["fsync=on", "synchronous_commit=on"]);
        let postgres = postgres.await;
        let store = fenced_store::PgFencedStore::new(sqlx::PgPool::connect(postgres.url()).await?);
        store.migrate().await?;
        Ok(Self {
            redis: Redis::start().await,
            postgres,
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
