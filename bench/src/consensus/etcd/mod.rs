//! etcd, compared with the best possible result of a client of etcd.

mod raw;

use e2e::servers::Etcd;
use lock_core::{LockManager, Ttl};

use self::raw::{Raw, Session};
use super::line::{WAITERS, hand_on};
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::{per_second, take_turns},
    pinning::start_server,
};

const TTL: Ttl = Ttl::secs(60);
const LINES_PER_TURN: usize = 4;
/// The number of tasks, each with a lock of its own.
const TASKS: u32 = 64;
const CYCLES_PER_TASK: u32 = 10;

async fn cycle(locks: &LockManager, resource: &str) -> Result<(), BoxError> {
    let guard = locks.acquire(resource).ttl(TTL).await?;
    guard.release().await?;
    Ok(())
}

/// Cycles per second of one task, compared with etcd's own recipe.
pub(super) async fn cycle_vs_recipe(rounds: u32) -> Result<Measured, BoxError> {
    cycles_vs_recipe(rounds, 1).await
}

/// Cycles per second of many tasks, compared with etcd's own recipe.
pub(super) async fn throughput_vs_recipe(rounds: u32) -> Result<Measured, BoxError> {
    cycles_vs_recipe(rounds, TASKS).await
}

async fn cycles_vs_recipe(rounds: u32, tasks: u32) -> Result<Measured, BoxError> {
    let server = start_server(Etcd::start)?;
    let locks = palisade::connect(server.url()).await?;
    let session = Session::start(&server.url()).await?;
    let ours = |task| {
        let (locks, resource) = (locks.clone(), format!("r{task}"));
        async move {
            for _ in 0..CYCLES_PER_TASK {
                cycle(&locks, &resource).await?;
            }
            Ok(())
        }
    };
    let theirs = |task| {
        let (mut session, lock) = (session.clone(), format!("r{task}"));
        async move {
            for _ in 0..CYCLES_PER_TASK {
                session.cycle(&lock).await?;
            }
            Ok(())
        }
    };
    let medians = take_turns(
        rounds,
        async |samples| {
            samples.push(per_second(tasks, CYCLES_PER_TASK, ours).await?);
            Ok(())
        },
        async |samples| {
            samples.push(per_second(tasks, CYCLES_PER_TASK, theirs).await?);
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::PerSecond))
}

/// From the moment a release is sent until the next of eight waiters has the lock, compared with a
/// deletion and its notification.
pub(super) async fn handoff_vs_watch(rounds: u32) -> Result<Measured, BoxError> {
    let server = start_server(Etcd::start)?;
    let locks = palisade::connect(server.url()).await?;
    let mut raw = Raw::connect(&server.url()).await?;
    raw.watch().await?;
    let medians = take_turns(
        rounds,
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
