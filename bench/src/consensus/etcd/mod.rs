//! etcd, compared with the best that a client of it could do.

mod raw;
mod server;

use lock_core::{LockManager, Ttl};

use self::{raw::Raw, server::Server};
use super::line::{WAITERS, hand_on};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::take_turns,
};

const TTL: Ttl = Ttl::secs(60);
const CYCLES_PER_TURN: u32 = 20;
const LINES_PER_TURN: usize = 4;

/// Acquire and release, compared with the minimum that such a lock needs from etcd: a lease, a key
/// attached to it, and the deletion of the key.
pub(super) async fn cycle_vs_floor(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = palisade::connect(server.url()).await?;
    let mut raw = Raw::connect(&server).await?;
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            let work = async || cycle(&locks).await;
            samples.repeat(CYCLES_PER_TURN, work).await
        },
        async |samples| {
            let work = async || raw.cycle(TTL).await;
            samples.repeat(CYCLES_PER_TURN, work).await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

async fn cycle(locks: &LockManager) -> Result<(), BoxError> {
    let guard = locks.acquire("r").ttl(TTL).await?;
    guard.release().await?;
    Ok(())
}

/// From the moment a release is sent until the next of eight waiters has the lock, compared with a
/// deletion and its notification.
pub(super) async fn handoff_vs_watch(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = palisade::connect(server.url()).await?;
    let mut raw = Raw::connect(&server).await?;
    raw.watch().await?;
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            for _ in 0..LINES_PER_TURN {
                hand_on(&locks, TTL, samples).await?;
            }
            Ok(())
        },
        async |samples| {
            for _ in 0..WAITERS * LINES_PER_TURN {
                samples.push(raw.deletion_to_news().await?);
            }
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}
