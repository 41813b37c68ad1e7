//! Redlock on three servers: an acquire asks all servers and raises all, and a release goes to all.

use e2e::servers::RedlockServers;
use futures_util::future::try_join_all;
use lock_core::Ttl;
use redis::{RedisResult, aio::MultiplexedConnection};

use crate::{
    figure::{BoxError, Measured, Unit},
    paired::compare,
    pinning::start_server,
    redis::{connect, round_trip},
};

const CYCLES_PER_TURN: u32 = 100;

/// Acquire and release, compared with the same number of rounds that do nothing.
pub(super) async fn cycle_vs_floor(rounds: u32) -> Result<Measured, BoxError> {
    let servers = start_server(async || RedlockServers::start(3).await)?;
    servers.provision(Ttl::secs(60)).await?;
    let locks = palisade::connect(servers.url()).await?;
    let floor = servers.nodes().iter().map(|node| connect(node.url()));
    let mut floor = try_join_all(floor).await?;
    let ours = async || locks.acquire("r").await?.release().await;
    let nothing = async || three_rounds(&mut floor).await;
    let medians = compare(rounds, CYCLES_PER_TURN, ours, nothing).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// The round trips to all servers that an acquire (two) and a release (one) need.
async fn three_rounds(connections: &mut [MultiplexedConnection]) -> RedisResult<()> {
    for _ in 0..3 {
        try_join_all(connections.iter_mut().map(round_trip)).await?;
    }
    Ok(())
}
