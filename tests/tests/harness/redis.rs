//! The wall clock of a real Redis.

use std::time::Duration;

use e2e::servers::{self, ClockOffset};
use redis::{AsyncCommands, Client, RedisResult, aio::MultiplexedConnection};

async fn connect(url: &str) -> RedisResult<MultiplexedConnection> {
    let client = Client::open(url)?;
    client.get_multiplexed_async_connection().await
}

/// Catches: tests of clocks that jump, in which no clock jumps.
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

    // The purpose: one lease that ends before its time, and one that does not.
    let mut commands = connect(server.url()).await.unwrap();
    let () = commands.pset_ex("key", 1, 60_000).await.unwrap();
    server.set_clock(ClockOffset::Ahead(Duration::ZERO));
    assert!(!commands.exists::<_, bool>("key").await.unwrap());
    let () = commands.pset_ex("key", 1, 60_000).await.unwrap();
    server.set_clock(ClockOffset::Behind(HOUR));
    let left: u64 = commands.pttl("key").await.unwrap();
    assert!(left > 3_600_000, "{left}");
}
