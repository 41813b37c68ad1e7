//! Many uncontended locks, over one connection.

use e2e::servers::Redis;
use lock_core::LockManager;
use rustix::time::{ClockId, clock_gettime};

use super::{
    floor::{connect, two_round_trips},
    rslock::Rslock,
};
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::{per_second, take_turns},
    pinning::start_server,
};

const TASKS: u32 = 64;
const CYCLES: u32 = 25;

/// Cycles per second, compared with the same number of round trips that do nothing.
pub(super) async fn vs_floor(rounds: u32) -> Result<Measured, BoxError> {
    let server = start_server(Redis::start)?;
    let locks = palisade::connect(server.url()).await?;
    let floor = connect(server.url()).await?;
    let nothing = |_| {
        let mut floor = floor.clone();
        async move {
            for _ in 0..CYCLES {
                two_round_trips(&mut floor).await?;
            }
            Ok(())
        }
    };
    compare(rounds, Unit::PerSecond, &locks, nothing).await
}

/// Cycles per second, compared with those of a peer.
pub(super) async fn vs_rslock(rounds: u32) -> Result<Measured, BoxError> {
    compare_with_rslock(rounds, Unit::PerSecond).await
}

/// CPU time of the clients for a cycle, compared with that of a peer.
pub(super) async fn client_cpu_vs_rslock(rounds: u32) -> Result<Measured, BoxError> {
    compare_with_rslock(rounds, Unit::Micros).await
}

async fn compare_with_rslock(rounds: u32, unit: Unit) -> Result<Measured, BoxError> {
    let server = start_server(Redis::start)?;
    let locks = palisade::connect(server.url()).await?;
    let rslock = Rslock::new(server.url());
    let theirs = |task| {
        let rslock = rslock.clone();
        async move {
            let resource = format!("theirs:{task}");
            for _ in 0..CYCLES {
                rslock.cycle(&resource).await?;
            }
            Ok(())
        }
    };
    compare(rounds, unit, &locks, theirs).await
}

/// Cycles per second, or microseconds of CPU time for each.
async fn compare<F>(
    rounds: u32,
    unit: Unit,
    locks: &LockManager,
    other: impl Fn(u32) -> F + Send + Sync,
) -> Result<Measured, BoxError>
where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let ours = |task| {
        let (locks, resource) = (locks.clone(), format!("ours:{task}"));
        async move {
            for _ in 0..CYCLES {
                locks.acquire(resource.as_str()).await?.release().await?;
            }
            Ok(())
        }
    };
    let medians = take_turns(
        rounds,
        async |samples| {
            samples.push(measured(unit, ours).await?);
            Ok(())
        },
        async |samples| {
            samples.push(measured(unit, &other).await?);
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(unit))
}

async fn measured<F>(unit: Unit, task: impl Fn(u32) -> F) -> Result<f64, BoxError>
where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let before = cpu_us();
    let rate = per_second(TASKS, CYCLES, task).await?;
    Ok(match unit {
        Unit::Micros => (cpu_us() - before) / f64::from(TASKS * CYCLES),
        _ => rate,
    })
}

/// CPU time of this process, in microseconds.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
