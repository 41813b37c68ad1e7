//! An uncontended lock: the cost of acquiring and releasing it.

use e2e::servers::Redis;

use super::{
    floor::{connect, two_round_trips},
    rslock::Rslock,
};
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::compare,
    pinning::start_server,
};

const CYCLES_PER_TURN: u32 = 200;

/// Acquire and release, compared with the same number of round trips that do nothing.
pub(super) async fn vs_floor(rounds: u32) -> Result<Measured, BoxError> {
    let server = start_server(Redis::start)?;
    let locks = palisade::connect(server.url()).await?;
    let mut floor = connect(server.url()).await?;
    let ours = async || locks.acquire("r").await?.release().await;
    let nothing = async || two_round_trips(&mut floor).await;
    let medians = compare(rounds, CYCLES_PER_TURN, ours, nothing).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// Acquire and drop: the caller does not wait for the release, but its next acquire must not
/// overtake it.
pub(super) async fn dropped_vs_floor(rounds: u32) -> Result<Measured, BoxError> {
    let server = start_server(Redis::start)?;
    let locks = palisade::connect(server.url()).await?;
    let mut floor = connect(server.url()).await?;
    let ours = async || locks.acquire("r").await.map(drop);
    let nothing = async || two_round_trips(&mut floor).await;
    let medians = compare(rounds, CYCLES_PER_TURN, ours, nothing).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// Acquire and release, compared with those of a peer.
pub(super) async fn vs_rslock(rounds: u32) -> Result<Measured, BoxError> {
    let server = start_server(Redis::start)?;
    let locks = palisade::connect(server.url()).await?;
    let rslock = Rslock::new(server.url());
    let ours = async || locks.acquire("ours").await?.release().await;
    let theirs = async || rslock.cycle("theirs").await;
    let medians = compare(rounds, CYCLES_PER_TURN, ours, theirs).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}
