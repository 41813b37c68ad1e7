//! The scenario, the gateway and the operators' commands on each lock service, which its URL names.
//! A missing ability of a service is an error with its own kind.

use std::any::Any;

use e2e::servers::{
    MySqlDatabase, RedisCluster, RedisWithSentinels, RedlockServers, etcd, mariadb_database,
    mysql_database, postgres_database, redis, zookeeper,
};
use fenced_store::{MySqlFencedStore, PgFencedStore, SqliteFencedStore};
use lock_core::{FencingToken, Holder, Issuer, Plausibility, ResourceName, Sequencer, Ttl};
use reqwest::Method;
use serde_json::json;
use sqlx::{MySqlPool, PgPool, SqlitePool, sqlite::SqliteConnectOptions};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{
    gateway::{Gateway, patient, send},
    operator_commands::object,
    scenario::{assert_as_told, played},
};

/// The length of a lease that every lock service grants: a session of ZooKeeper bounds its leases.
const TTL_MS: u64 = 15_000;

/// A lock service of one test.
struct Service {
    url: String,
    kind: &'static str,
    _servers: Box<dyn Any + Send + Sync>,
}

fn service(url: String, kind: &'static str, servers: impl Any + Send + Sync) -> Service {
    Service {
        url,
        kind,
        _servers: Box::new(servers),
    }
}

async fn one_redis() -> Service {
    service(redis().await.url().to_owned(), "redis", ())
}

async fn sentinels() -> Service {
    let servers = RedisWithSentinels::start().await;
    service(servers.url(), "redis", servers)
}

async fn cluster() -> Service {
    let servers = RedisCluster::start().await;
    service(servers.url(), "redis", servers)
}

async fn redlock() -> Service {
    let servers = RedlockServers::start(3).await;
    let longest = Ttl::secs(60);
    let provisioned = servers.provision(longest).await;
    provisioned.unwrap();
    service(servers.url(), "redlock", servers)
}

async fn one_zookeeper() -> Service {
    service(zookeeper().await.url(), "zookeeper", ())
}

async fn one_etcd() -> Service {
    service(etcd().await.url(), "etcd", ())
}

async fn one_postgres() -> Service {
    let database = postgres_database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    PgFencedStore::new(pool).migrate().await.unwrap();
    service(database.url().to_owned(), "postgres", database)
}

async fn one_mysql(database: MySqlDatabase) -> Service {
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    MySqlFencedStore::new(pool).migrate().await.unwrap();
    service(database.url().to_owned(), "mysql", database)
}

async fn one_sqlite() -> Service {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("leases.db").display());
    service(url, "sqlite", folder)
}

/// A name that no other test has: the servers are shared.
fn fresh(name: &str) -> String {
    format!("{name}-{:016x}", rand::random::<u64>())
}

async fn the_scenario(url: &str, kind: &str) {
    let told = played(&["--lock", url]).await;
    assert_as_told(&told, 1);
    assert_eq!(told["lock"], kind);
}

async fn the_gateway(gateway: &Gateway, kind: &str) {
    let id = fresh("by-url");
    let resource = format!("account:{id}");
    let account = format!("/v1/accounts/{id}");
    let lease = json!({ "ttl_ms": TTL_MS });
    let granted = gateway.acquire(&resource, patient(TTL_MS)).await;
    assert_eq!(granted.body["issuer"], kind, "{granted:?}");
    let first = granted.body["fencing_token"].as_str().unwrap();
    let held = gateway.acquire(&resource, lease).await;
    held.assert_problem(409, "lock-held");
    let seen = send(gateway.request(Method::GET, &format!("/v1/leases/{resource}"))).await;
    assert_eq!(seen.body["lease"]["token"], granted.body["token"]);
    let renewal = gateway.request(Method::PUT, &format!("/v1/leases/{resource}"));
    let renewal = renewal.header("fencing-token", first);
    let renewed = send(renewal.json(&json!({ "ttl_ms": TTL_MS }))).await;
    assert_eq!(renewed.status, 200, "{renewed:?}");
    assert_eq!(gateway.write(&account, Some(first), 5).await.status, 200);

    let wait = json!({ "ttl_ms": TTL_MS, "wait_ms": 30_000 });
    let next = async { gateway.acquire(&resource, wait).await };
    let release = async { gateway.release(&resource, first).await };
    let (next, released) = tokio::join!(next, release);
    assert_eq!((next.status.as_u16(), released.status.as_u16()), (201, 204));
    assert!(next.body["token"].as_u64() > granted.body["token"].as_u64());
    let late = gateway.write(&account, Some(first), 666).await;
    late.assert_problem(412, "fencing-token-stale");
    let second = next.body["fencing_token"].as_str().unwrap();
    assert_eq!(gateway.write(&account, Some(second), 7).await.status, 200);
    assert_eq!(gateway.balance(&id).await, Some(7));
}

/// An idempotency key is good until its lease was released, whatever happens before.
async fn keys(gateway: &Gateway, kind: &'static str) {
    let (key, id) = (fresh("key"), fresh("by-url"));
    let resource = format!("account:{id}");
    let seen = gateway.token(&resource, TTL_MS).await;
    assert_eq!(gateway.release(&resource, &seen).await.status, 204);
    // The store has seen a greater token than the service remembers, as if the service had lost its
    // state.
    let number: u64 = seen.split(';').next().unwrap().parse().unwrap();
    let mark = FencingToken::new(number + 1_000_000).unwrap();
    claim(gateway, kind, &resource, mark).await;
    let keyed = || {
        let request = gateway.request(Method::POST, &format!("/v1/leases/{resource}"));
        let request = request.header("idempotency-key", &key);
        send(request.json(&patient(TTL_MS)))
    };
    let granted = keyed().await;
    assert_eq!(granted.status, 201, "{granted:?}");
    assert!(granted.body["token"].as_u64() > Some(mark.get()));
    let again = keyed().await;
    assert_eq!(again.body["fencing_token"], granted.body["fencing_token"]);
    let token = granted.body["fencing_token"].as_str().unwrap();
    let account = format!("/v1/accounts/{id}");
    assert_eq!(gateway.write(&account, Some(token), 5).await.status, 200);
    assert_eq!(gateway.release(&resource, token).await.status, 204);
    keyed().await.assert_problem(409, "idempotency-key-spent");
}

/// Claims a token in the gateway's store that its lock service did not issue.
async fn claim(gateway: &Gateway, issuer: &'static str, resource: &str, token: FencingToken) {
    let file = SqliteConnectOptions::new().filename(gateway.database());
    let pool = SqlitePool::connect_with(SqliteFencedStore::recommended(file));
    let store = SqliteFencedStore::new(pool.await.unwrap());
    let store = store.plausibility(Plausibility::unchecked());
    let resource = ResourceName::new(resource).unwrap();
    let issuer = Issuer::new(issuer).unwrap();
    let grant = Sequencer::new(issuer, resource, token, Holder::random());
    store.claim(&grant).await.unwrap();
}

async fn asked_over_http(url: &str) {
    const TOKEN: &str = "0123456789abcdef";
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let arguments = ["--lock", url, "--store", &store, "--admin-token", TOKEN];
    let gateway = Gateway::start_with_log(&arguments).await;
    let held = fresh("by-url");
    gateway.token(&held, TTL_MS).await;
    let one = format!("/v1/admin/leases/{held}");
    for (what, method, path) in [
        ("list", Method::GET, "/v1/admin/leases"),
        ("force-release", Method::DELETE, &one),
    ] {
        let answer = send(gateway.request(method, path).bearer_auth(TOKEN)).await;
        assert_eq!(answer.status, 200, "{what}: {answer:?}");
    }
}

/// A missing ability of a lock service is a 501, and no failure that an operator has to look after.
#[tokio::test]
async fn a_missing_ability_of_a_lock_service_is_a_501_over_http() {
    let service = one_zookeeper().await;
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let arguments = ["--lock", &service.url, "--store", &store, "--unsigned"];
    let one = Gateway::start_with_log(&arguments).await;
    let other = Gateway::start_with_log(&arguments).await;
    let resource = fresh("by-url");
    // A lease of ZooKeeper belongs to the session that acquired it.
    let token = one.token(&resource, TTL_MS).await;
    let renewal = other.request(Method::PUT, &format!("/v1/leases/{resource}"));
    let renewal = renewal.header("fencing-token", &token);
    let answer = send(renewal.json(&json!({ "ttl_ms": TTL_MS }))).await;
    answer.assert_problem(501, "lock-service-lacks-it");
    let log = other.logged("status=501").await;
    assert!(!log.contains("ERROR"), "{log}");
}

async fn the_operators(gateway: &Gateway, url: &str) {
    let resource = format!("account:{}", fresh("by-url"));
    let granted = gateway.acquire(&resource, patient(TTL_MS)).await;
    assert_eq!(granted.status, 201, "{granted:?}");
    let lock = ["--lock", url];
    let database = format!("sqlite:{}", gateway.database().display());

    let seen = object(&[&["inspect"][..], &lock, &[&resource]].concat()).await;
    assert_eq!(seen["holder"]["token"], granted.body["token"]);
    let list = [&["list"][..], &lock].concat();
    let force = ["force-release", &resource, "--store", &database, "--yes"];
    let force = [&force[..], &lock].concat();
    for command in [&list, &force] {
        let name = command[0];
        let told = object(command).await.to_string();
        let token = granted.body["token"].to_string();
        assert!(told.contains(&token), "{name}: {told}");
    }
}

/// Catches: a lock service that the program cannot use, or whose grants, floors or ends of leases
/// it misreads.
async fn everything_on(service: Service) {
    let gateway = Gateway::start_on(&service.url).await;
    tokio::join!(
        the_scenario(&service.url, service.kind),
        the_gateway(&gateway, service.kind),
        keys(&gateway, service.kind),
        the_operators(&gateway, &service.url),
        asked_over_http(&service.url),
    );
}

macro_rules! by_url {
    ($($name:ident = $service:expr;)+) => {$(
        #[tokio::test]
        async fn $name() {
            everything_on($service.await).await;
        }
    )+};
}

by_url! {
    on_redis = one_redis();
    on_sentinels = sentinels();
    on_a_cluster = cluster();
    on_redlock = redlock();
    on_etcd = one_etcd();
    on_zookeeper = one_zookeeper();
    on_postgres = one_postgres();
    on_sqlite = one_sqlite();
    on_mariadb = one_mysql(mariadb_database().await);
    on_mysql = one_mysql(mysql_database().await);
}

/// Lock service and store in one database, which only `--store` names.
async fn all_in_one(service: Service) {
    let gateway = Gateway::start_with(&["--store", &service.url]).await;
    the_gateway(&gateway, service.kind).await;
    let told = played(&["--store", &service.url]).await;
    assert_as_told(&told, 1);
    assert_eq!(told["lock"], service.kind);
}

#[tokio::test]
async fn one_postgres_is_enough() {
    all_in_one(one_postgres().await).await;
}

#[tokio::test]
async fn one_mariadb_is_enough() {
    all_in_one(one_mysql(mariadb_database().await).await).await;
}

#[tokio::test]
async fn one_mysql_is_enough() {
    all_in_one(one_mysql(mysql_database().await).await).await;
}

#[tokio::test]
async fn one_sqlite_is_enough() {
    all_in_one(one_sqlite().await).await;
}

/// The same URL with an IPv6 address that leads to the same server.
async fn at_ipv6(url: &str) -> (String, JoinSet<()>) {
    let (before, after) = url.split_once("127.0.0.1:").unwrap();
    let end = after.find(|c: char| !c.is_ascii_digit());
    let (port, after) = after.split_at(end.unwrap_or(after.len()));
    let server = format!("127.0.0.1:{port}");
    let listener = TcpListener::bind("[::1]:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut ways = JoinSet::new();
    ways.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            let server = TcpStream::connect(server.clone()).await;
            let mut server = server.unwrap();
            connections.spawn(async move {
                let copied = tokio::io::copy_bidirectional(&mut client, &mut server);
                copied.await.map(drop)
            });
        }
    });
    (format!("{before}{address}{after}"), ways)
}

/// Catches: an address in brackets that is looked up together with the brackets.
#[tokio::test]
async fn servers_are_reached_at_ipv6_addresses() {
    for service in [
        one_redis().await,
        one_etcd().await,
        one_zookeeper().await,
        one_postgres().await,
    ] {
        let (url, _ways) = at_ipv6(&service.url).await;
        let seen = object(&["inspect", "--lock", &url, "account:1"]).await;
        assert_eq!(seen["resource"], "account:1", "{url}");
    }
    let (postgres, mariadb) = (postgres_database().await, mariadb_database().await);
    PgFencedStore::new(PgPool::connect(postgres.url()).await.unwrap())
        .migrate()
        .await
        .unwrap();
    MySqlFencedStore::new(MySqlPool::connect(mariadb.url()).await.unwrap())
        .migrate()
        .await
        .unwrap();
    for url in [postgres.url(), mariadb.url()] {
        let (url, _ways) = at_ipv6(url).await;
        object(&["jobs", "list", "--store", &url]).await;
    }
}
