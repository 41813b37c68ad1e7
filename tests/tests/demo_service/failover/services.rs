//! Lock services, in front of a store that stays.

use e2e::servers::{
    Etcd, PostgresDatabase, Redis, RedlockServers, ZooKeeper, postgres_database, until,
};
use futures_util::future::join_all;
use lock_core::Ttl;
use sqlx::Postgres;

use crate::failover::{
    crew::{Crew, IMPATIENT, Place},
    endpoint::{Endpoint, Names},
};

/// The store is not behind the endpoint.
async fn crew(scheme: &str, names: &Names, store: &PostgresDatabase) -> Vec<Crew<Postgres>> {
    let place = Place {
        name: "leases",
        lock: format!("{scheme}://{}?{IMPATIENT}", names.addresses()),
        store: store.url().to_owned(),
        is_one: false,
        loses_leases: true,
        loses_store: false,
    };
    vec![Crew::new(place).await]
}

/// A replica of a Redis.
async fn replica(of: &Redis) -> Redis {
    let replica = Redis::start().await;
    let () = replica
        .command(&["REPLICAOF", "127.0.0.1", of.port()])
        .await;
    replica
}

/// The replica has all that there is, and is a primary from here on. The first one ends.
async fn succeed(first: &Redis, replica: &Redis) {
    let () = first.command(&["SET", "last", "1"]).await;
    until("it has caught up", async || {
        let last: Option<String> = replica.command(&["GET", "last"]).await;
        last.is_some()
    })
    .await;
    first.kill().await;
    let () = replica.command(&["REPLICAOF", "NO", "ONE"]).await;
}

/// One server, and a replica.
pub(crate) struct OneRedis {
    first: Redis,
    replica: Redis,
    names: Names,
    store: PostgresDatabase,
}

impl Endpoint for OneRedis {
    type Db = Postgres;

    const NAME: &'static str = "Redis";

    const REPLACES_SILENT_SESSIONS: bool = true;

    async fn start() -> Self {
        let first = Redis::start().await;
        Self {
            replica: replica(&first).await,
            names: Names::of([first.address().to_owned()]).await,
            store: postgres_database().await,
            first,
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn crews(&self) -> Vec<Crew<Postgres>> {
        crew("redis", &self.names, &self.store).await
    }

    async fn takes_no_writes(&self) {
        self.names.lead_to([self.replica.address()]);
    }

    async fn is_succeeded(&self) {
        self.names.lead_nowhere();
        succeed(&self.first, &self.replica).await;
        self.names.lead_to([self.replica.address()]);
    }
}

/// Three servers, each with a replica.
pub(crate) struct Redlock {
    servers: RedlockServers,
    replicas: Vec<Redis>,
    names: Names,
    store: PostgresDatabase,
}

impl Endpoint for Redlock {
    type Db = Postgres;

    const NAME: &'static str = "Redlock";

    async fn start() -> Self {
        let servers = RedlockServers::start(3).await;
        servers.provision(Ttl::secs(60)).await.unwrap();
        let addresses = servers.nodes().iter().map(|node| node.address().to_owned());
        Self {
            replicas: join_all(servers.nodes().iter().map(replica)).await,
            names: Names::of(addresses).await,
            store: postgres_database().await,
            servers,
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn crews(&self) -> Vec<Crew<Postgres>> {
        crew("redlock+redis", &self.names, &self.store).await
    }

    async fn takes_no_writes(&self) {
        self.names.lead_to(self.replicas.iter().map(Redis::address));
    }

    /// One of the three. It may lack grants for all that the others know, so it counts again only
    /// when an operator has healed it.
    async fn is_succeeded(&self) {
        succeed(&self.servers.nodes()[0], &self.replicas[0]).await;
        self.names.lead_one(0, self.replicas[0].address());
    }
}

/// Three nodes, of which clients know one.
pub(crate) struct OneEtcd {
    nodes: Etcd,
    names: Names,
    store: PostgresDatabase,
}

impl Endpoint for OneEtcd {
    type Db = Postgres;

    const NAME: &'static str = "etcd";

    const REPLACES_SILENT_SESSIONS: bool = true;

    async fn start() -> Self {
        let nodes = Etcd::start_cluster().await;
        Self {
            names: Names::of([nodes.addresses()[0].to_owned()]).await,
            store: postgres_database().await,
            nodes,
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn crews(&self) -> Vec<Crew<Postgres>> {
        crew("etcd", &self.names, &self.store).await
    }

    /// It has no majority.
    async fn takes_no_writes(&self) {
        tokio::join!(self.nodes.kill(1), self.nodes.kill(2));
    }

    async fn takes_writes(&self) {
        tokio::join!(self.nodes.start_again(1), self.nodes.start_again(2));
    }

    async fn is_succeeded(&self) {
        self.nodes.kill(0).await;
        self.names.lead_to([self.nodes.addresses()[1]]);
    }
}

/// Three servers, of which clients know one.
pub(crate) struct OneZooKeeper {
    servers: ZooKeeper,
    names: Names,
    store: PostgresDatabase,
}

impl Endpoint for OneZooKeeper {
    type Db = Postgres;

    const NAME: &'static str = "ZooKeeper";

    const REPLACES_SILENT_SESSIONS: bool = true;

    async fn start() -> Self {
        let servers = ZooKeeper::start_ensemble().await;
        Self {
            names: Names::of([servers.addresses()[0].clone()]).await,
            store: postgres_database().await,
            servers,
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    async fn crews(&self) -> Vec<Crew<Postgres>> {
        crew("zookeeper", &self.names, &self.store).await
    }

    /// It has no majority.
    async fn takes_no_writes(&self) {
        tokio::join!(self.servers.kill(1), self.servers.kill(2));
    }

    async fn takes_writes(&self) {
        tokio::join!(self.servers.restart(1), self.servers.restart(2));
        self.servers.until_all_serve().await;
    }

    async fn is_succeeded(&self) {
        self.servers.kill(0).await;
        self.names.lead_to([&*self.servers.addresses()[1]]);
    }
}
