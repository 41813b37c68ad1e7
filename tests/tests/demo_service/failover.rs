//! A gateway while the name of its lock service or store leads to a server that takes no writes, as
//! during a failover. The connections to that server stay.

use std::time::Duration;

use e2e::{
    observer::until,
    proxy::{Fault, Proxy},
    servers::{DatabaseServer, Redis},
};
use fenced_store::PgFencedStore;
use reqwest::StatusCode;
use serde_json::json;
use sqlx::{ConnectOptions, PgPool, postgres::PgConnectOptions};
use tokio::time::Instant;

use crate::gateway::Gateway;

/// For so long the name leads to the server that takes no writes.
const AWAY: Duration = Duration::from_secs(3);

/// A name, which leads to one of two servers.
struct Name {
    proxy: Proxy,
    server: String,
    read_only: String,
}

impl Name {
    async fn of(server: String, read_only: String) -> Self {
        let proxy = Proxy::start(&server).await;
        Self {
            proxy,
            server,
            read_only,
        }
    }

    /// Acquires and writes while the name leads elsewhere, and afterwards.
    async fn leads_away_and_back(&self, gateway: &Gateway) {
        let held = gateway.open_account().await;
        self.proxy.point_to(&self.read_only);
        self.proxy.inflict(Fault::Cut);
        let away = Instant::now();
        let mut refused = 0;
        while away.elapsed() < AWAY {
            for status in tries(gateway, &held).await {
                // 503 says that the same may be sent again.
                assert!(status.is_success() || status == 503, "{status}");
                refused += usize::from(status == 503);
            }
        }
        assert!(refused > 0, "no request was refused");

        self.proxy.point_to(&self.server);
        until("both work again", async || {
            tries(gateway, &held)
                .await
                .iter()
                .all(StatusCode::is_success)
        })
        .await;
        // On every connection that there is.
        for _ in 0..10 {
            let again = (0..4).map(|_| tries(gateway, &held));
            for statuses in futures_util::future::join_all(again).await {
                assert!(statuses.iter().all(StatusCode::is_success), "{statuses:?}");
            }
        }
    }
}

/// Acquires something, and writes under a lease that is held.
async fn tries(gateway: &Gateway, held: &str) -> [StatusCode; 2] {
    let free = format!("r{:016x}", rand::random::<u64>());
    let acquired = gateway.acquire(&free, json!({ "ttl_ms": 60_000 })).await;
    let written = gateway.write("/v1/accounts/1", Some(held), 7).await;
    [acquired.status, written.status]
}

/// A Postgres and a standby of it, and a URL of the name.
async fn postgres() -> ([DatabaseServer; 2], Name, String) {
    let server = DatabaseServer::postgres(&[]).await;
    let store = PgFencedStore::new(PgPool::connect(server.url()).await.unwrap());
    store.migrate().await.unwrap();
    let standby = server.lagging_standby().await;
    let address = |server: &DatabaseServer| server.url().parse::<PgConnectOptions>().unwrap();
    let at = |address: &PgConnectOptions| {
        format!("postgres://{}:{}", address.get_host(), address.get_port())
    };
    let name = Name::of(at(&address(&server)), at(&address(&standby))).await;
    let url = address(&server).host("127.0.0.1").port(name.proxy.port());
    let url = url.to_url_lossy().to_string();
    ([server, standby], name, url)
}

/// Catches: a session to a standby that stays in the pool, and is used until a restart.
#[tokio::test]
async fn a_gateway_whose_store_was_a_standby_for_a_while_goes_on() {
    let redis = Redis::start().await;
    let (_servers, name, store) = postgres().await;
    let gateway = Gateway::start_with(&["--lock", redis.url(), "--store", &store]).await;
    name.leads_away_and_back(&gateway).await;
}

#[tokio::test]
async fn a_gateway_in_one_postgres_that_was_a_standby_for_a_while_goes_on() {
    let (_servers, name, url) = postgres().await;
    let gateway = Gateway::start_with(&["--lock", &url, "--store", &url]).await;
    name.leads_away_and_back(&gateway).await;
}

#[tokio::test]
async fn a_gateway_whose_redis_was_a_replica_for_a_while_goes_on() {
    let (redis, replica) = tokio::join!(Redis::start(), Redis::start());
    let (host, port) = redis.address().rsplit_once(':').unwrap();
    let () = replica.command(&["REPLICAOF", host, port]).await;
    let name = Name::of(redis.url().to_owned(), replica.url().to_owned()).await;
    let gateway = Gateway::start_on(&name.proxy.url("redis")).await;
    name.leads_away_and_back(&gateway).await;
}
