//! A name that leads to a standby for a while, as during a failover, and sessions that the server
//! ends.

use std::{future::IntoFuture, time::Duration};

use e2e::{
    idle::nothing_is_noticed,
    proxy::{Fault, Proxy},
    servers::{DatabaseServer, until},
};
use fenced_store::PgFencedStore;
use lock_core::{
    Error, ErrorKind, LockManager, Outcome, Ttl,
    backend::{ConnectOptions, TokioRuntime},
};
use sqlx::{AssertSqlSafe, Executor, PgPool, postgres::PgConnectOptions};
use tokio::time::timeout;

use crate::{
    outages::proxied,
    world::{count, database, manager, migrate},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server and a standby, and a name that leads to one of them.
struct World {
    server: DatabaseServer,
    standby: DatabaseServer,
    name: Proxy,
    url: String,
}

impl World {
    async fn new() -> Self {
        let server = DatabaseServer::postgres(&[]).await;
        migrate(server.url()).await;
        let standby = server.lagging_standby().await;
        let (name, url) = proxied(server.url()).await;
        Self {
            server,
            standby,
            name,
            url,
        }
    }

    /// From here on the name leads to this server, and connections to the other server are cut.
    fn leads_to(&self, server: &DatabaseServer) {
        let address: PgConnectOptions = server.url().parse().unwrap();
        let (host, port) = (address.get_host(), address.get_port());
        self.name.point_to(&format!("postgres://{host}:{port}"));
        self.name.inflict(Fault::Cut);
    }

    /// Waits until this number of further connections was made. Each question needs one.
    async fn until_asked(&self, times: usize) {
        let before = self.name.connections();
        until("it asks", async || {
            self.name.connections() >= before + times
        })
        .await;
    }
}

/// Catches: a refusal that passes by itself ends a wait or a candidacy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_to_a_standby_go_on_after_the_failover() {
    let world = World::new().await;
    let locks = manager(&world.url).await;
    world.leads_to(&world.standby);
    // The first requests find connections that were cut, and may have been under way to the server.
    until("it knows that nothing was applied", async || {
        let refused = locks.try_acquire("r").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        refused.outcome() == Outcome::NotApplied && refused.to_string().contains("standby")
    })
    .await;

    let waits = locks.acquire("r").wait(Duration::from_secs(30));
    let lead = {
        let locks = locks.clone();
        async move {
            let lead = locks.lead("a").ttl(Ttl::secs(3));
            lead.run(async |_| Ok::<_, Error>(())).await
        }
    };
    let over = async {
        world.until_asked(6).await;
        world.leads_to(&world.server);
    };
    let all = async { tokio::join!(waits.into_future(), lead, over) };
    let (waited, led, ()) = timeout(PATIENCE, all).await.expect("they go on");
    waited.unwrap().release().await.unwrap();
    led.unwrap();
}

/// Catches: a pool that goes on using a session to a server that takes no writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_to_a_standby_is_not_used_again() {
    let world = World::new().await;
    let locks = manager(&world.url).await;
    world.leads_to(&world.standby);
    locks.try_acquire("r").await.unwrap_err();
    // Connections that exist stay where they are.
    let address: PgConnectOptions = world.server.url().parse().unwrap();
    let (host, port) = (address.get_host(), address.get_port());
    world.name.point_to(&format!("postgres://{host}:{port}"));
    for name in ["a", "b", "c", "d"] {
        let now = locks.try_acquire(name).await.unwrap();
        now.granted().unwrap().release().await.unwrap();
    }
}

/// Catches: a manager that is made on a standby, and learns only later that it is a standby.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connecting_to_a_standby_says_that_it_is_one() {
    let world = World::new().await;
    world.leads_to(&world.standby);
    let error = palisade::connect(&world.url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("standby"), "{error}");
    let pool = PgPool::connect(&world.url).await.unwrap();
    let store = PgFencedStore::new(pool);
    let error = palisade::open(store).await.unwrap_err();
    assert!(error.to_string().contains("standby"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_only_database_is_named_and_passes() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let locks = manager(database.url()).await;
    let name = count_name(&pool).await;
    let set = |to| AssertSqlSafe(format!("ALTER DATABASE {name} SET {to}"));
    pool.execute(set("default_transaction_read_only = on"))
        .await
        .unwrap();
    let error = palisade::connect(database.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(
        error.to_string().contains("default_transaction_read_only"),
        "{error}"
    );
    // Sessions that are made from now on are read-only.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    pool.execute(end).await.unwrap();
    until("it is refused", async || {
        let refused = locks.try_acquire("r").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
        refused
            .to_string()
            .contains("default_transaction_read_only")
    })
    .await;
    let mut connection = pool.acquire().await.unwrap();
    connection
        .execute("SET default_transaction_read_only = off")
        .await
        .unwrap();
    connection
        .execute(set("default_transaction_read_only = off"))
        .await
        .unwrap();
    // An attempt above may have been granted when its session ended, and its lease is being given
    // back.
    let now = locks.acquire("r").await.unwrap();
    now.release().await.unwrap();
}

async fn count_name(pool: &PgPool) -> String {
    let name = sqlx::query_scalar("SELECT current_database()::text");
    name.fetch_one(pool).await.unwrap()
}

/// Each call comes after a pause that is longer than the server allows.
/// Catches: a caller that gets an error because the server has ended an idle session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_was_ended_for_being_idle_is_not_noticed() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let name = count_name(&pool).await;
    let limit = format!("ALTER DATABASE {name} SET idle_session_timeout = '200ms'");
    pool.execute(AssertSqlSafe(limit)).await.unwrap();
    let url = with_application(database.url());
    let locks: LockManager = manager(&url).await;
    let idle = "select count(*) from pg_stat_activity
                where datname = current_database() and application_name = 'idle'";
    nothing_is_noticed(&locks, async || {
        until("sessions end", async || count(&pool, idle).await == 0).await;
    })
    .await
    .unwrap();
}

fn with_application(url: &str) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}application_name=idle")
}

/// The only connection of the pool has a transaction that lasts longer than the ttl. Only renewals
/// on other connections keep the lease.
/// Catches: renewals that queue behind the transactions of the application.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_fills_the_pool_does_not_cost_its_lease() {
    let database = database().await;
    let pool = sqlx::postgres::PgPoolOptions::new()
        .max_connections(1)
        .connect(database.url())
        .await
        .unwrap();
    let store = fenced_store::PgFencedStore::new(pool);
    let shop = palisade::open(store).await.unwrap();
    let short = shop.acquire("r").ttl(Ttl::secs(3));
    let guard = short.await.unwrap();
    let mut tx = guard.begin().await.unwrap();
    sqlx::raw_sql("SELECT pg_sleep(6)")
        .execute(&mut *tx)
        .await
        .unwrap();
    guard.remaining().expect("its lease was renewed meanwhile");
    tx.commit_and_release(guard).await.unwrap();
}

/// The login of an application's pool changes, as it does where passwords are short-lived.
/// Catches: connections of the lock service that keep the old login.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_a_lock_service_follow_the_settings_of_the_pool() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let runtime = std::sync::Arc::new(TokioRuntime);
    let backend =
        palisade_postgres::PostgresBackend::on(pool.clone(), ConnectOptions::default(), runtime);
    let locks = LockManager::builder()
        .build(backend.await.unwrap())
        .unwrap();
    let changed: PgConnectOptions = with_application(database.url()).parse().unwrap();
    pool.set_connect_options(changed.application_name("changed"));
    let ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity
                 where datname = current_database() and pid <> pg_backend_pid()";
    count(&pool, ended).await;
    let guard = locks.acquire("r").await.unwrap();
    let sessions = "select count(*) from pg_stat_activity
                    where datname = current_database() and application_name = 'changed'";
    assert!(count(&pool, sessions).await > 0);
    guard.release().await.unwrap();
}

/// Catches: a queue that a standby loses for ever when it is promoted before its first checkpoint.
#[tokio::test]
async fn no_sequence_is_unlogged() {
    const UNLOGGED: &str = "select count(*) from pg_class c
        where c.relnamespace = 'fenced'::regnamespace and c.relkind = 'S'
          and c.relpersistence <> 'p'";
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    assert_eq!(crate::world::count(&pool, UNLOGGED).await, 0);
}
