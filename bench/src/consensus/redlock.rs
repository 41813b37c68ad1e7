//! Redlock on three servers: acquire asks all, raises all; release releases all.

use std::sync::{Arc, LazyLock};

use futures_util::future::try_join_all;
use lock_core::{SystemClock, Ttl};
use palisade::redlock::{RedlockNodes, RedlockOptions};
use redis::{RedisResult, Script, aio::MultiplexedConnection};

use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::take_turns,
    redis::Server,
};

const NODES: usize = 3;
const CYCLES_PER_TURN: u32 = 100;

static NOTHING: LazyLock<Script> = LazyLock::new(|| Script::new("return 1"));

/// Acquire and release, compared with the same number of rounds that do nothing.
pub(super) async fn cycle_vs_floor(setting: Setting) -> Result<Measured, BoxError> {
    let mut servers = Vec::new();
    let mut floor = Vec::new();
    for _ in 0..NODES {
        let server = Server::start(setting.pinning).await?;
        floor.push(server.connect().await?);
        servers.push(server);
    }
    let addresses: Vec<_> = servers
        .iter()
        .map(|server| server.url().trim_start_matches("redis://"))
        .collect();
    let url = format!("redlock+redis://{}", addresses.join(","));
    let nodes = RedlockNodes::new(&url, RedlockOptions::default(), Arc::new(SystemClock))?;
    nodes.provision(Ttl::secs(60), None).await?;
    let locks = palisade::connect(&url).await?;
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            let work = async || locks.acquire("r").await?.release().await;
            samples.repeat(CYCLES_PER_TURN, work).await
        },
        async |samples| {
            let work = async || three_rounds(&mut floor).await;
            samples.repeat(CYCLES_PER_TURN, work).await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// As many round trips to all servers as acquire, which takes two, and release need.
async fn three_rounds(connections: &mut [MultiplexedConnection]) -> RedisResult<()> {
    for _ in 0..3 {
        let nothing = connections.iter_mut().map(async |connection| {
            let mut script = NOTHING.key("k");
            script.arg(1).arg(2);
            script.invoke_async::<i64>(connection).await
        });
        try_join_all(nothing).await?;
    }
    Ok(())
}
