//! Connections that are cut, and servers that do not answer.

use std::{future::IntoFuture, time::Duration};

use e2e::{
    idle::nothing_is_noticed,
    proxy::{Fault, Proxy},
    servers::{DatabaseServer, until},
    waits::ends_when_it_says,
    wakes::a_lost_wake_up_is_made_up_for,
};
use lock_core::{
    Attempt, ErrorKind, LockManager, LostReason, Operation, Ttl, backend::ConnectOptions,
};
use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection, PgPool, postgres::PgConnectOptions,
};
use tokio::time::timeout;
use url::Url;

use crate::world::{connect, count, database, manager, migrate};

const PATIENCE: Duration = Duration::from_secs(30);

/// A proxy in front of a database, and the URL of that database through it.
pub(crate) async fn proxied(url: &str) -> (Proxy, String) {
    let address: PgConnectOptions = url.parse().unwrap();
    let (host, port) = (address.get_host(), address.get_port());
    let proxy = Proxy::start(&format!("postgres://{host}:{port}")).await;
    let own: Url = proxy.url("postgres").parse().unwrap();
    let through = address.host("127.0.0.1").port(own.port().unwrap());
    (proxy, through.to_url_lossy().to_string())
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_noticed() {
    let database = database().await;
    let (proxy, url) = proxied(database.url()).await;
    let locks = manager(&url).await;
    nothing_is_noticed(&locks, async || proxy.inflict(Fault::Cut))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_wake_up_that_is_lost_with_its_connection_is_made_up_for() {
    let server = DatabaseServer::postgres(&[]).await;
    migrate(server.url()).await;
    let (proxy, url) = proxied(server.url()).await;
    let (locks, rival) = (manager(&url).await, manager(server.url()).await);
    a_lost_wake_up_is_made_up_for(&locks, &rival, &proxy)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_wait_ends_when_it_says_although_the_server_is_silent_or_down() {
    let server = DatabaseServer::postgres(&[]).await;
    migrate(server.url()).await;
    let (proxy, url) = proxied(server.url()).await;
    let locks = manager(&url).await;
    proxy.inflict(Fault::HoldRequests);
    proxy.inflict_on_new(Fault::HoldRequests);
    ends_when_it_says(&locks).await;
    proxy.let_go();
    server.kill().await;
    ends_when_it_says(&locks).await;
}

/// Catches: a copy of a request arrives after "held", and gets a lease that no caller knows of.
#[tokio::test]
async fn a_late_copy_of_a_request_that_was_answered_held_gets_nothing() {
    let database = database().await;
    let (proxy, url) = proxied(database.url()).await;
    let options = ConnectOptions::from(url).response_timeout(Duration::from_millis(500));
    let backend = connect(options).await;
    let locks = LockManager::builder().build(backend).unwrap();
    let rival = manager(database.url()).await;
    let (name, ttl) = ("account:42", Ttl::secs(60));
    let held = rival.acquire(name).ttl(ttl).await.unwrap();
    let trap = proxy.at_request(name, Fault::HoldRequests);
    let answer = locks.acquire(name).ttl(ttl).try_acquire().await;
    assert!(matches!(answer, Ok(Attempt::Held { .. })), "{answer:?}");
    let connection = trap.connection().expect("a copy was held up");
    held.release().await.unwrap();
    proxy.let_go();
    until("the copy has arrived", async || proxy.has_ended(connection)).await;
    let seen = rival.inspect(name).await.unwrap();
    assert_eq!(seen.holder, None, "no caller knows of its lease");
}

#[tokio::test]
async fn without_a_server_everything_is_a_typed_error_and_a_lease_is_lost_in_time() {
    let server = DatabaseServer::postgres(&[]).await;
    migrate(server.url()).await;
    let locks = manager(server.url()).await;
    let guard = locks.acquire("r").ttl(Ttl::secs(2)).await.unwrap();
    server.kill().await;
    let lost = timeout(PATIENCE, guard.lost()).await.expect("it is lost");
    assert_eq!(lost.reason(), LostReason::Expired);
    let error = locks.try_acquire("other").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let error = palisade::connect(server.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.operation(), Operation::Connect);
    server.start_again().await;
    let again = timeout(PATIENCE, locks.acquire("r").into_future()).await;
    again.expect("an answer").unwrap().release().await.unwrap();
}

/// Catches: the error of the pool, which only says that its time is up.
#[tokio::test]
async fn the_error_for_a_server_that_takes_no_connection_has_its_reason() {
    const SOON: Duration = Duration::from_millis(400);
    let few = ["max_connections=6", "superuser_reserved_connections=0"];
    let server = DatabaseServer::postgres(&few).await;
    migrate(server.url()).await;
    let says = async |why: &str| {
        let connecting = palisade::connect(server.url()).response_timeout(SOON);
        let error = connecting.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    };
    let mut all = Vec::new();
    while let Ok(one) = PgConnection::connect(server.url()).await {
        all.push(one);
    }
    says("too many clients").await;
    server.kill().await;
    says("Connection refused").await;
}

/// Catches: an acquisition that fails because an administrator has cancelled its statement.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_cancelled_is_sent_again() {
    const CANCEL: &str = "select count(pg_cancel_backend(pid)) from pg_stat_activity
        where datname = current_database() and pg_blocking_pids(pid) <> '{}'";
    let database = database().await;
    let locks = manager(database.url()).await;
    locks.acquire("r").await.unwrap().release().await.unwrap();
    let pool = PgPool::connect(database.url()).await.unwrap();
    let mut blocker = pool.begin().await.unwrap();
    let row = "select from fenced.lease where resource like '%r' for update";
    sqlx::query(row).execute(&mut *blocker).await.unwrap();
    let acquire = tokio::spawn(locks.acquire("r").into_future());
    for round in 0..2 {
        until("a statement is cancelled", async || {
            count(&pool, CANCEL).await > 0
        })
        .await;
        assert!(!acquire.is_finished(), "after {round} other statements");
    }
    blocker.rollback().await.unwrap();
    let granted = timeout(PATIENCE, acquire).await.expect("an answer");
    granted.unwrap().unwrap().release().await.unwrap();
}
