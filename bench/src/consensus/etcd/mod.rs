//! etcd, compared with the best that a client of it could do.

mod raw;
mod server;

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use lock_core::{LockManager, ResourceName, Ttl};
use tokio::sync::Mutex;

use self::{raw::Raw, server::Server};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::{Samples, take_turns},
};

const TTL: Ttl = Ttl::secs(60);
const CYCLES_PER_TURN: u32 = 20;
const WAITERS: usize = 8;
/// For the watches of the waiters.
const SETTLE: Duration = Duration::from_millis(20);
const LINES_PER_TURN: usize = 4;

/// Acquire and release, compared with the minimum that such a lock needs from etcd: a lease, a key
/// attached to it, and the deletion of the key.
pub(super) async fn cycle_vs_floor(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = LockManager::connect(&server.url()).await?;
    let mut raw = Raw::connect(&server).await?;
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            for _ in 0..CYCLES_PER_TURN {
                samples.time(cycle(&locks)).await?;
            }
            Ok(())
        },
        async |samples| {
            for _ in 0..CYCLES_PER_TURN {
                samples.time(raw.cycle(TTL)).await?;
            }
            Ok(())
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
    let locks = LockManager::connect(&server.url()).await?;
    let mut raw = Raw::connect(&server).await?;
    raw.watch().await?;
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            for _ in 0..LINES_PER_TURN {
                hand_on(&locks, samples).await?;
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

/// A line of eight that gets shorter with each hand-off.
async fn hand_on(locks: &LockManager, samples: &mut Samples) -> Result<(), BoxError> {
    let sent = Mutex::new(Instant::now());
    let gaps = Mutex::new(Vec::new());
    let first = locks.acquire("r").ttl(TTL).await?;
    let waiters = (0..WAITERS).map(async |_| {
        let guard = locks.acquire("r").ttl(TTL).await?;
        let mut sent = sent.lock().await;
        gaps.lock().await.push(sent.elapsed().as_secs_f64() * 1e6);
        *sent = Instant::now();
        drop(sent);
        guard.release().await?;
        Ok::<_, BoxError>(())
    });
    let start = async {
        // Wait until all of them are in line and watch, before the line moves.
        let resource = ResourceName::new("r")?;
        while locks.inspect(&resource).await?.waiters != Some(WAITERS as u64) {}
        tokio::time::sleep(SETTLE).await;
        *sent.lock().await = Instant::now();
        first.release().await?;
        Ok::<_, BoxError>(())
    };
    tokio::try_join!(try_join_all(waiters), start)?;
    for gap in gaps.into_inner() {
        samples.push(gap);
    }
    Ok(())
}
