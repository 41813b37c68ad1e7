//! Many uncontended locks, over one connection.

use std::time::Instant;

use lock_core::LockManager;
use tokio::task::JoinSet;

use super::{floor::two_round_trips, rslock::Rslock, server::Server};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::take_turns,
};

const TASKS: u32 = 64;
const CYCLES_PER_TASK: u32 = 25;

/// Cycles per second, compared with the same number of round trips that do nothing.
pub(super) async fn vs_floor(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = palisade::connect(server.url()).await?;
    let floor = server.connect().await?;
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            samples.push(cycles_per_second(|task| ours(locks.clone(), task)).await?);
            Ok(())
        },
        async |samples| {
            let round_trips = || {
                let mut floor = floor.clone();
                async move {
                    for _ in 0..CYCLES_PER_TASK {
                        two_round_trips(&mut floor).await?;
                    }
                    Ok(())
                }
            };
            samples.push(cycles_per_second(|_| round_trips()).await?);
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::PerSecond))
}

/// Cycles per second, compared with a peer's.
pub(super) async fn vs_rslock(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = palisade::connect(server.url()).await?;
    let rslock = Rslock::new(server.url());
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            samples.push(cycles_per_second(|task| ours(locks.clone(), task)).await?);
            Ok(())
        },
        async |samples| {
            let theirs = |task| {
                let rslock = rslock.clone();
                async move {
                    let resource = format!("theirs:{task}");
                    for _ in 0..CYCLES_PER_TASK {
                        rslock.cycle(&resource).await?;
                    }
                    Ok(())
                }
            };
            samples.push(cycles_per_second(theirs).await?);
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::PerSecond))
}

async fn ours(locks: LockManager, task: u32) -> Result<(), BoxError> {
    let resource = format!("ours:{task}");
    for _ in 0..CYCLES_PER_TASK {
        locks.acquire(resource.as_str()).await?.release().await?;
    }
    Ok(())
}

/// Runs the cycles of all tasks concurrently.
async fn cycles_per_second<F>(task: impl Fn(u32) -> F) -> Result<f64, BoxError>
where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for number in 0..TASKS {
        tasks.spawn(task(number));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(f64::from(TASKS * CYCLES_PER_TASK) / started.elapsed().as_secs_f64())
}
