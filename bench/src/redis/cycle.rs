//! An uncontended lock: the cost of acquiring and releasing it.

use super::{floor::two_round_trips, rslock::Rslock, server::Server};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::take_turns,
};

const CYCLES_PER_TURN: u32 = 200;

/// Acquire and release, compared with the same number of round trips that do nothing.
pub(super) async fn vs_floor(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = palisade::connect(server.url()).await?;
    let mut floor = server.connect().await?;
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            let work = async || locks.acquire("r").await?.release().await;
            samples.repeat(CYCLES_PER_TURN, work).await
        },
        async |samples| {
            let work = async || two_round_trips(&mut floor).await;
            samples.repeat(CYCLES_PER_TURN, work).await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// Acquire and drop: the caller does not wait for the release, but its next acquire must not
/// overtake it.
pub(super) async fn dropped_vs_floor(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = palisade::connect(server.url()).await?;
    let mut floor = server.connect().await?;
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            let work = async || locks.acquire("r").await.map(drop);
            samples.repeat(CYCLES_PER_TURN, work).await
        },
        async |samples| {
            let work = async || two_round_trips(&mut floor).await;
            samples.repeat(CYCLES_PER_TURN, work).await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// Acquire and release, compared with a peer's.
pub(super) async fn vs_rslock(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = palisade::connect(server.url()).await?;
    let rslock = Rslock::new(server.url());
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            let work = async || locks.acquire("ours").await?.release().await;
            samples.repeat(CYCLES_PER_TURN, work).await
        },
        async |samples| {
            let work = async || rslock.cycle("theirs").await;
            samples.repeat(CYCLES_PER_TURN, work).await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}
