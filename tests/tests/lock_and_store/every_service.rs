//! Jobs and leaders in front of a Postgres, on every lock service.

use std::{pin::pin, sync::Arc, time::Duration};

use e2e::servers::{
    MySqlServer, OnMariaDb, OnMySql, RedlockServers, apart, etcd, mariadb_database,
    postgres_database, redis, zookeeper,
};
use fenced_jobs::{JobOutcome, Jobs};
use fenced_store::{
    Dialect, FencedLockError, FencedLocks, MySqlFencedStore, PgFencedStore, SqliteFencedStore,
    admin::AdminError,
};
use futures_util::{FutureExt, StreamExt};
use lock_core::{Fairness, Ttl};
use palisade::{
    backend::{ConnectOptions, TokioRuntime},
    redlock::RedlockNodes,
};
use sqlx::{MySqlPool, PgPool, SqlitePool, sqlite::SqliteConnectOptions};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

/// A slot is done once, a lead passes from one leader to the next, and a deposed leader is refused.
async fn works<DB: Dialect>(shop: FencedLocks<DB>) {
    let once = async || {
        let once = shop.once("night", "2026-11-27T02:00:00Z").wait(PATIENCE);
        once.run(async |_| Ok::<_, FencedLockError>(()))
            .await
            .unwrap()
    };
    let JobOutcome::Ran((), receipt) = once().await else {
        panic!("it was not run before");
    };
    let JobOutcome::Done { token, .. } = once().await else {
        panic!("it was done");
    };
    assert_eq!(token, receipt.token());

    let every = Duration::from_millis(20);
    let mut seen = pin!(shop.locks().observe("scheduler", every));
    assert_eq!(seen.next().await.unwrap().unwrap(), None);
    let lead = || {
        let lead = shop.lead("scheduler");
        lead.ttl(Ttl::secs(20)).metadata("here")
    };
    let first = lead().campaign().await.unwrap();
    let leader = timeout(PATIENCE, seen.next()).await.expect("it is seen");
    let leader = leader.unwrap().unwrap().unwrap();
    assert_eq!(leader.token, first.token());
    assert_eq!(leader.metadata.unwrap().as_str(), "here");

    let next = lead();
    let mut next = pin!(next.campaign());
    if shop.locks().capabilities().fairness != Fairness::None {
        assert!((&mut next).now_or_never().is_none(), "one leads already");
    }
    let stale = first.sequencer().clone();
    first.resign().await.unwrap();
    let next = timeout(PATIENCE, next)
        .await
        .expect("it is its turn")
        .unwrap();
    assert!(next.token() > stale.token());
    assert!(shop.store().begin(&stale).await.unwrap_err().is_fenced());
    next.begin().await.unwrap().commit().await.unwrap();
    next.resign().await.unwrap();
}

async fn store() -> (e2e::servers::PostgresDatabase, PgFencedStore) {
    let database = postgres_database().await;
    let store = PgFencedStore::new(PgPool::connect(database.url()).await.unwrap());
    store.migrate().await.unwrap();
    (database, store)
}

async fn behind(lock: impl Into<ConnectOptions>) {
    let (_database, store) = store().await;
    let locks = palisade::connect(lock).await.unwrap();
    works(FencedLocks::new(locks, store)).await;
}

#[tokio::test]
async fn jobs_and_leaders_behind_redis() {
    behind(apart(redis().await.url())).await;
}

#[tokio::test]
async fn jobs_and_leaders_behind_redlock() {
    let servers = RedlockServers::start(3).await;
    let options = ConnectOptions::from(servers.url()).prefix("jobs");
    let nodes = RedlockNodes::new(options.clone(), Arc::new(TokioRuntime)).unwrap();
    nodes.provision(Ttl::secs(60), None).await.unwrap();
    behind(options).await;
}

#[tokio::test]
async fn jobs_and_leaders_behind_etcd() {
    behind(apart(&etcd().await.url())).await;
}

#[tokio::test]
async fn jobs_and_leaders_behind_zookeeper() {
    behind(apart(&zookeeper().await.url())).await;
}

#[tokio::test]
async fn jobs_and_leaders_behind_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    behind(format!(
        "sqlite:{}",
        folder.path().join("leases.db").display()
    ))
    .await;
}

#[tokio::test]
async fn jobs_and_leaders_in_one_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteConnectOptions::new().filename(folder.path().join("shop.db"));
    let file = SqliteFencedStore::recommended(file.create_if_missing(true));
    let pool = SqlitePool::connect_with(file).await.unwrap();
    works(palisade::open(pool).await.unwrap()).await;
}

#[tokio::test]
async fn jobs_and_leaders_behind_mariadb() {
    let database = mariadb_database().await;
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    MySqlFencedStore::new(pool).migrate().await.unwrap();
    behind(database.url()).await;
}

async fn in_one_mysql<S: MySqlServer>() {
    let database = S::database().await;
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    works(palisade::open(pool).await.unwrap()).await;
}

#[tokio::test]
async fn jobs_and_leaders_in_one_mariadb() {
    in_one_mysql::<OnMariaDb>().await;
}

#[tokio::test]
async fn jobs_and_leaders_in_one_mysql() {
    in_one_mysql::<OnMySql>().await;
}

#[tokio::test]
async fn jobs_and_leaders_in_one_postgres() {
    let (_database, store) = store().await;
    works(palisade::open(store).await.unwrap()).await;
}

/// Whether a pair with this lock service forgets marks. If not, its error says why.
async fn forgets(lock: impl Into<ConnectOptions>) -> bool {
    let (_database, store) = store().await;
    let locks = palisade::connect(lock).await.unwrap();
    let accounts = FencedLocks::new(locks, store);
    match accounts.forget_marks(Duration::from_secs(60 * 60)).await {
        Ok(_) => true,
        Err(AdminError::NotForgettable { reason, .. }) => {
            assert!(reason.contains("neither the clock nor one revision"));
            false
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Catches: a floor that shuts out each holder of another shard.
#[tokio::test]
async fn tokens_that_count_by_themselves_are_not_forgotten() {
    assert!(!forgets(apart(redis().await.url())).await);
    assert!(forgets(apart(&etcd().await.url())).await);
    assert!(forgets(apart(&zookeeper().await.url())).await);
    assert!(forgets("memory:").await);
}
