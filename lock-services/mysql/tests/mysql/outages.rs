//! Connections that are cut, and servers that do not answer.

use std::{future::IntoFuture, time::Duration};

use e2e::{
    idle::nothing_is_noticed,
    proxy::{Fault, Proxy},
    servers::{DatabaseServer, MySqlServer, until},
    waits::ends_when_it_says,
    wakes::a_lost_wake_up_is_made_up_for,
};
use lock_core::{
    Attempt, ErrorKind, LockManager, LostReason, Operation, Ttl, backend::ConnectOptions,
};
use sqlx::{Connection as _, MySqlConnection};
use tokio::time::timeout;
use url::Url;

use crate::world::{connect, database_of, manager, migrate, on_each_server};

const PATIENCE: Duration = Duration::from_secs(30);

/// A proxy in front of a database, and the URL of that database through it, without TLS.
async fn proxied(url: &str) -> (Proxy, String) {
    let mut url: Url = url.parse().unwrap();
    let server = format!("mysql://127.0.0.1:{}", url.port().unwrap());
    let proxy = Proxy::start(&server).await;
    let own: Url = proxy.url("mysql").parse().unwrap();
    url.set_port(own.port()).unwrap();
    (proxy, url.into())
}

async fn a_connection_that_was_closed_while_idle_is_not_noticed<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let (proxy, url) = proxied(database.url()).await;
    let locks = manager(&url).await;
    nothing_is_noticed(&locks, async || proxy.inflict(Fault::Cut))
        .await
        .unwrap();
}

async fn a_wake_up_that_is_lost_with_its_connection_is_made_up_for<S: MySqlServer>() {
    let server = S::start().await;
    migrate(server.url()).await;
    let (proxy, url) = proxied(server.url()).await;
    let (locks, rival) = (manager(&url).await, manager(server.url()).await);
    a_lost_wake_up_is_made_up_for(&locks, &rival, &proxy)
        .await
        .unwrap();
}

async fn a_wait_ends_when_it_says_although_the_server_is_silent_or_down<S: MySqlServer>() {
    let server = S::start().await;
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
async fn a_late_copy_of_a_request_that_was_answered_held_gets_nothing<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let (proxy, url) = proxied(database.url()).await;
    let options = ConnectOptions::from(url).response_timeout(Duration::from_millis(500));
    let backend = connect(options).await;
    let locks = LockManager::builder().build(backend).unwrap();
    let rival = manager(database.url()).await;
    let (name, ttl) = ("account:42", Ttl::secs(60));
    let held = rival.acquire(name).ttl(ttl).await.unwrap();
    // Texts are sent in hex.
    let hex: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    let trap = proxy.at_request(&hex, Fault::HoldRequests);
    let answer = locks.acquire(name).ttl(ttl).try_acquire().await;
    assert!(matches!(answer, Ok(Attempt::Held { .. })), "{answer:?}");
    let connection = trap.connection().expect("a copy was held up");
    held.release().await.unwrap();
    proxy.let_go();
    until("the copy has arrived", async || proxy.has_ended(connection)).await;
    let seen = rival.inspect(name).await.unwrap();
    assert_eq!(seen.holder, None, "no caller knows of its lease");
}

async fn without_a_server_everything_is_a_typed_error_and_a_lease_is_lost_in_time<
    S: MySqlServer,
>() {
    let server = S::start().await;
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
async fn the_error_for_a_server_that_takes_no_connection_has_its_reason<S: MySqlServer>() {
    const SOON: Duration = Duration::from_millis(400);
    let server = DatabaseServer::mysql_with(S::KIND, &["--max-connections=10"]).await;
    migrate(server.url()).await;
    let says = async |why: &str| {
        let connecting = palisade::connect(server.url()).response_timeout(SOON);
        let error = connecting.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    };
    let mut all = Vec::new();
    while let Ok(one) = MySqlConnection::connect(server.url()).await {
        all.push(one);
    }
    says("Too many connections").await;
    server.kill().await;
    says("Connection refused").await;
}

on_each_server!(
    a_connection_that_was_closed_while_idle_is_not_noticed,
    a_wake_up_that_is_lost_with_its_connection_is_made_up_for,
    a_wait_ends_when_it_says_although_the_server_is_silent_or_down,
    a_late_copy_of_a_request_that_was_answered_held_gets_nothing,
    without_a_server_everything_is_a_typed_error_and_a_lease_is_lost_in_time,
    the_error_for_a_server_that_takes_no_connection_has_its_reason,
);
