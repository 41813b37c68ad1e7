//! etcd, compared with the best that a client of it could do.

mod raw;
mod server;

use std::time::Instant;

use lock_core::{LockManager, Ttl};
use tokio::task::JoinSet;

use self::{
    raw::{Raw, Session},
    server::Server,
};
use super::line::{WAITERS, hand_on};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::take_turns,
};

const TTL: Ttl = Ttl::secs(60);
const CYCLES_PER_TURN: u32 = 20;
const LINES_PER_TURN: usize = 4;
/// Each with a lock of its own.
const TASKS: u32 = 64;
const CYCLES_PER_TASK: u32 = 10;

/// Acquire and release, compared with the minimum that such a lock needs from etcd: a lease, a key
/// attached to it, and the deletion of the key.
pub(super) async fn cycle_vs_floor(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = palisade::connect(server.url()).await?;
    let mut raw = Raw::connect(&server).await?;
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            let work = async || cycle(&locks, "r").await;
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

async fn cycle(locks: &LockManager, resource: &str) -> Result<(), BoxError> {
    let guard = locks.acquire(resource).ttl(TTL).await?;
    guard.release().await?;
    Ok(())
}

/// Cycles per second of one task, compared with etcd's own recipe.
pub(super) async fn cycle_vs_recipe(setting: Setting) -> Result<Measured, BoxError> {
    cycles_vs_recipe(setting, 1).await
}

/// Cycles per second of many tasks, compared with etcd's own recipe.
pub(super) async fn throughput_vs_recipe(setting: Setting) -> Result<Measured, BoxError> {
    cycles_vs_recipe(setting, TASKS).await
}

async fn cycles_vs_recipe(setting: Setting, tasks: u32) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = palisade::connect(server.url()).await?;
    let session = Session::start(&server, TTL).await?;
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            let ours = |task| {
                let (locks, resource) = (locks.clone(), format!("r{task}"));
                async move {
                    for _ in 0..CYCLES_PER_TASK {
                        cycle(&locks, &resource).await?;
                    }
                    Ok(())
                }
            };
            samples.push(cycles_per_second(tasks, ours).await?);
            Ok(())
        },
        async |samples| {
            session.clone().keep_alive().await?;
            let theirs = |task| {
                let (mut session, lock) = (session.clone(), format!("r{task}"));
                async move {
                    for _ in 0..CYCLES_PER_TASK {
                        session.cycle(&lock).await?;
                    }
                    Ok(())
                }
            };
            samples.push(cycles_per_second(tasks, theirs).await?);
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::PerSecond))
}

/// Runs the cycles of all tasks concurrently.
async fn cycles_per_second<F>(tasks: u32, task: impl Fn(u32) -> F) -> Result<f64, BoxError>
where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let mut running = JoinSet::new();
    let started = Instant::now();
    for number in 0..tasks {
        running.spawn(task(number));
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(f64::from(tasks * CYCLES_PER_TASK) / started.elapsed().as_secs_f64())
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
