//! `/readyz`: whether lock service and store take writes, and nothing that a client could occupy.

use e2e::{
    observer::until,
    servers::{DatabaseServer, Etcd, Redis, RedlockServers},
};
use fenced_store::PgFencedStore;
use lock_core::Ttl;
use reqwest::Method;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, PgPool};

use crate::gateway::{Answer, Gateway, send};

async fn ready(gateway: &Gateway) -> Answer {
    send(gateway.request(Method::GET, "/readyz")).await
}

async fn until_ready(gateway: &Gateway) {
    until("the gateway is ready", async || {
        let answer = ready(gateway).await;
        assert!(
            answer.status == 200 || answer.body["reasons"].is_array(),
            "{answer:?}"
        );
        answer.status == 200
    })
    .await;
}

/// Waits until lock service or store cannot write. Returns why.
async fn until_not_ready(gateway: &Gateway, side: &str) -> String {
    until("the gateway is not ready", async || {
        ready(gateway).await.status == 503
    })
    .await;
    let answer = ready(gateway).await;
    let is_it = |name: &str| answer.body[name] == Value::Bool(name != side);
    assert!(is_it("lock_service") && is_it("store"), "{answer:?}");
    let reasons = answer.body["reasons"].as_array().unwrap();
    assert_eq!(reasons.len(), 1, "{answer:?}");
    reasons[0].as_str().unwrap().to_owned()
}

async fn in_postgres(server: &DatabaseServer, statement: &'static str) {
    let mut owner = PgConnection::connect(server.url()).await.unwrap();
    let statement = format!("SET default_transaction_read_only = off; {statement}");
    for statement in statement.split(';') {
        owner
            .execute(AssertSqlSafe(statement.to_owned()))
            .await
            .unwrap();
    }
}

/// The probe uses no name that a client can occupy, not even by writing nonsense to the lock
/// service.
#[tokio::test]
async fn no_client_keeps_a_gateway_from_being_ready() {
    let redis = Redis::start().await;
    let gateway = Gateway::start_on(redis.url()).await;
    let name = "readyz";
    gateway.token(name, 300_000).await;
    let keys: Vec<String> = redis.command(&["KEYS", &format!("*{name}*")]).await;
    assert!(!keys.is_empty());
    for key in keys {
        let () = redis.command(&["SET", &key, "nonsense"]).await;
    }
    // The control: the lease of that name cannot be looked at.
    let path = format!("/v1/leases/{name}");
    let inspected = send(gateway.request(Method::GET, &path)).await;
    assert!(inspected.status.is_server_error(), "{inspected:?}");
    let answer = ready(&gateway).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn on_a_read_only_postgres_a_gateway_is_not_ready() {
    let server = DatabaseServer::postgres(&[]).await;
    let lock = ["--lock", "memory:", "--store", server.url()];
    let gateway = Gateway::start_with(&lock).await;
    until_ready(&gateway).await;
    in_postgres(
        &server,
        "ALTER SYSTEM SET default_transaction_read_only = on; SELECT pg_reload_conf()",
    )
    .await;
    let why = until_not_ready(&gateway, "store").await;
    assert!(why.contains("default_transaction_read_only"), "{why}");
    in_postgres(
        &server,
        "ALTER SYSTEM SET default_transaction_read_only = off; SELECT pg_reload_conf()",
    )
    .await;
    until_ready(&gateway).await;
}

/// The disk has no room for a file. Here the reason is that no file may be larger.
/// Catches: a probe that only reads, because a server with a full disk answers it.
#[tokio::test]
async fn on_a_postgres_that_can_write_no_file_a_gateway_is_not_ready() {
    let server = DatabaseServer::postgres(&[]).await;
    let lock = ["--lock", "memory:", "--store", server.url()];
    let gateway = Gateway::start_with(&lock).await;
    until_ready(&gateway).await;
    in_postgres(
        &server,
        "ALTER SYSTEM SET temp_file_limit = '64kB'; SELECT pg_reload_conf()",
    )
    .await;
    let why = until_not_ready(&gateway, "store").await;
    assert!(why.contains("temp_file_limit"), "{why}");
    in_postgres(
        &server,
        "ALTER SYSTEM RESET temp_file_limit; SELECT pg_reload_conf()",
    )
    .await;
    until_ready(&gateway).await;
}

/// Here Postgres is the lock service.
#[tokio::test]
async fn on_a_read_only_postgres_there_are_no_leases() {
    let server = DatabaseServer::postgres(&[]).await;
    let pool = PgPool::connect(server.url()).await.unwrap();
    PgFencedStore::new(pool).migrate().await.unwrap();
    let of_two = Gateway::start_on(server.url()).await;
    until_ready(&of_two).await;
    in_postgres(
        &server,
        "ALTER SYSTEM SET default_transaction_read_only = on; SELECT pg_reload_conf()",
    )
    .await;
    until_not_ready(&of_two, "lock_service").await;
    in_postgres(
        &server,
        "ALTER SYSTEM SET default_transaction_read_only = off; SELECT pg_reload_conf()",
    )
    .await;
    until_ready(&of_two).await;
}

/// Redis takes no writes because it has too few replicas, or is a replica itself.
#[tokio::test]
async fn on_a_redis_that_takes_no_writes_a_gateway_is_not_ready() {
    let (redis, primary) = tokio::join!(Redis::start(), Redis::start());
    let gateway = Gateway::start_on(redis.url()).await;
    until_ready(&gateway).await;
    let (host, port) = primary.address().rsplit_once(':').unwrap();
    for (off, on) in [
        (
            &["CONFIG", "SET", "min-replicas-to-write", "1"][..],
            &["CONFIG", "SET", "min-replicas-to-write", "0"][..],
        ),
        (&["REPLICAOF", host, port], &["REPLICAOF", "NO", "ONE"]),
    ] {
        let () = redis.command(off).await;
        until_not_ready(&gateway, "lock_service").await;
        let () = redis.command(on).await;
        until_ready(&gateway).await;
    }
    // The server forgets the keys of probes by itself.
    let probes: Vec<String> = redis.command(&["KEYS", "*probe:*"]).await;
    assert!(!probes.is_empty());
    for probe in probes {
        let left_ms: i64 = redis.command(&["PTTL", &probe]).await;
        assert!((1..=600_000).contains(&left_ms), "{probe}: {left_ms} ms");
    }
}

#[tokio::test]
async fn on_a_redlock_without_a_majority_a_gateway_is_not_ready() {
    let redlock = RedlockServers::start(3).await;
    redlock.provision(Ttl::secs(600)).await.unwrap();
    let gateway = Gateway::start_on(&redlock.url()).await;
    let nodes = redlock.nodes();
    nodes[0].pause().await;
    // The control: it has a replica.
    until_ready(&gateway).await;
    nodes[1].pause().await;
    until_not_ready(&gateway, "lock_service").await;
    nodes[0].resume().await;
    nodes[1].resume().await;
    until_ready(&gateway).await;
}

#[tokio::test]
async fn on_an_etcd_without_space_a_gateway_is_not_ready() {
    let etcd = Etcd::start().await;
    let gateway = Gateway::start_on(&etcd.url()).await;
    until_ready(&gateway).await;
    etcd.set_without_space(true).await;
    until_not_ready(&gateway, "lock_service").await;
    etcd.set_without_space(false).await;
    until_ready(&gateway).await;
}
