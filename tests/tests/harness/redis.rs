//! The harness starts, stops, kills and restarts a real Redis.

use std::{fs, time::Duration};

use e2e::servers::{self, ClockOffset};
use redis::{AsyncCommands, Client, RedisResult, aio::MultiplexedConnection};
use rustix::process::{Pid, test_kill_process};

async fn connect(url: &str) -> RedisResult<MultiplexedConnection> {
    let client = Client::open(url)?;
    client.get_multiplexed_async_connection().await
}

#[tokio::test]
async fn each_server_is_a_server_of_its_own() {
    let (one, two) = tokio::join!(servers::Redis::start(), servers::Redis::start());
    assert_ne!(one.url(), two.url());
    let mut first = connect(one.url()).await.unwrap();
    let mut second = connect(two.url()).await.unwrap();
    let () = first.set("key", "value").await.unwrap();
    assert!(!second.exists::<_, bool>("key").await.unwrap());
}

#[tokio::test]
async fn tests_share_one_server() {
    let url = servers::redis().await.url();
    assert_eq!(url, servers::redis().await.url());
    let mut connection = connect(url).await.unwrap();
    let pong: String = redis::cmd("PING")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(pong, "PONG");
}

#[tokio::test]
async fn a_restarted_server_has_the_same_port_and_no_data() {
    let server = servers::Redis::start().await;
    let before = server.running();
    let mut connection = connect(server.url()).await.unwrap();
    let () = connection.set("key", "value").await.unwrap();

    server.restart_empty().await;

    assert_eq!(server.running().url, before.url);
    assert_ne!(server.running().pid, before.pid);
    assert!(
        connection.exists::<_, bool>("key").await.is_err(),
        "the old connection is broken"
    );
    let mut connection = connect(server.url()).await.unwrap();
    assert!(!connection.exists::<_, bool>("key").await.unwrap());
}

#[tokio::test]
async fn a_killed_server_is_gone_until_it_is_restarted() {
    let server = servers::Redis::start().await;
    server.kill().await;
    assert!(connect(server.url()).await.is_err());
    server.restart_empty().await;
    assert!(connect(server.url()).await.is_ok());
}

#[tokio::test]
async fn a_paused_server_answers_once_it_is_resumed() {
    let server = servers::Redis::start().await;
    let mut connection = connect(server.url()).await.unwrap();
    connection.set_response_timeout(Duration::from_secs(60));
    server.pause().await;
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.running().pid)).unwrap();
    assert!(stat.contains(" T "), "not stopped: {stat}");

    let mut write = Box::pin(connection.set::<_, _, ()>("key", "value"));
    let early = tokio::time::timeout(Duration::from_millis(200), &mut write).await;
    assert!(early.is_err(), "a stopped server has answered");

    server.resume().await;
    write.await.unwrap();
}

#[tokio::test]
async fn a_dropped_server_is_gone_with_its_files() {
    let server = servers::Redis::start().await;
    let running = server.running();
    let pid = Pid::from_raw(i32::try_from(running.pid).unwrap()).unwrap();
    assert!(running.dir.exists());

    drop(server);

    assert_eq!(test_kill_process(pid), Err(rustix::io::Errno::SRCH));
    assert!(!running.dir.exists());
}

#[tokio::test]
async fn the_wall_clock_of_a_server_jumps_both_ways() {
    const HOUR: Duration = Duration::from_secs(3600);
    let server = servers::Redis::start_with_own_clock().await;
    let mut commands = connect(server.url()).await.unwrap();
    let mut seconds = async || -> u64 {
        let time: (u64, u64) = redis::cmd("TIME").query_async(&mut commands).await.unwrap();
        time.0
    };
    let before = seconds().await;
    server.set_clock(ClockOffset::Ahead(HOUR));
    let ahead = seconds().await;
    server.set_clock(ClockOffset::Behind(HOUR));
    let behind = seconds().await;
    server.restart_empty().await;
    assert!((3600..3660).contains(&(ahead - before)), "{before} {ahead}");
    assert!(
        (7200 - 60..=7200).contains(&(ahead - behind)),
        "{ahead} {behind}"
    );

    // What it is for: a lease that ends before its time, and one that does not.
    let mut commands = connect(server.url()).await.unwrap();
    let () = commands.pset_ex("key", 1, 60_000).await.unwrap();
    server.set_clock(ClockOffset::Ahead(Duration::ZERO));
    assert!(!commands.exists::<_, bool>("key").await.unwrap());
    let () = commands.pset_ex("key", 1, 60_000).await.unwrap();
    server.set_clock(ClockOffset::Behind(HOUR));
    let left: u64 = commands.pttl("key").await.unwrap();
    assert!(left > 3_600_000, "{left}");
}
