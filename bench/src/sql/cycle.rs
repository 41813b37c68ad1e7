//! The cost of an uncontended lease, and of a whole fenced write.

use std::time::Duration;

use e2e::servers::Redis;
use fenced_store::PgFencedLocks;

use super::world::{World, fenced_write, update};
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::{compare, per_second, take_turns},
    pinning::start_server,
    store::{durable_postgres, over_network},
};

const CYCLES: u32 = 25;
/// The connections of a pool, as in an application: a connection is given back while another one is
/// taken.
const CONNECTIONS: u32 = 4;
const CLIENTS: u32 = 32;

pub(super) async fn vs_updates(rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new(CONNECTIONS).await?;
    let medians = compare(
        rounds,
        CYCLES,
        async || world.cycle("account:1").await,
        async || {
            for _ in 0..2 {
                update(&mut *world.pool.acquire().await?, 1).await?;
            }
            Ok::<_, BoxError>(())
        },
    );
    Ok(medians.await?.ours_by_other(Unit::Micros))
}

pub(super) async fn fenced_vs_plain(rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new(CONNECTIONS).await?;
    whole_vs_plain(&world, rounds, CYCLES).await
}

pub(super) async fn fenced_vs_plain_over_network(rounds: u32) -> Result<Measured, BoxError> {
    let server = durable_postgres()?;
    let (_network, address) = over_network(&server, Duration::from_millis(3)).await?;
    let world = World::reached_by(address, server, CONNECTIONS).await?;
    whole_vs_plain(&world, rounds, 5).await
}

async fn whole_vs_plain(world: &World, rounds: u32, times: u32) -> Result<Measured, BoxError> {
    let plain = async || {
        let mut tx = world.pool.begin().await?;
        update(&mut tx, 1).await?;
        tx.commit().await?;
        Ok::<_, BoxError>(())
    };
    let fenced = async || fenced_write(&world.accounts, 1).await;
    let medians = compare(rounds, times, fenced, plain).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// A fenced write with Redis as lock service in front of the same store.
pub(super) async fn fenced_vs_redis(rounds: u32) -> Result<Measured, BoxError> {
    let (one, apart) = (
        World::new(CONNECTIONS).await?,
        World::new(CONNECTIONS).await?,
    );
    let redis = start_server(Redis::start)?;
    let locks = palisade::connect(redis.url()).await?;
    let unclaimed = "TRUNCATE fenced.lock_service, fenced.high_water_mark";
    sqlx::raw_sql(unclaimed).execute(&apart.pool).await?;
    let apart = PgFencedLocks::new(locks, apart.accounts.store().clone());
    let medians = compare(
        rounds,
        CYCLES,
        async || fenced_write(&one.accounts, 1).await,
        async || fenced_write(&apart, 1).await,
    );
    Ok(medians.await?.ours_by_other(Unit::Micros))
}

pub(super) async fn throughput_vs_updates(rounds: u32) -> Result<Measured, BoxError> {
    let world = World::new(CLIENTS).await?;
    let ours = |client| {
        let accounts = world.accounts.clone();
        async move {
            for _ in 0..CYCLES {
                let guard = accounts.acquire(format!("account:{client}")).await?;
                guard.release().await?;
            }
            Ok(())
        }
    };
    let updates = |client| {
        let pool = world.pool.clone();
        async move {
            for _ in 0..2 * CYCLES {
                update(&mut *pool.acquire().await?, client).await?;
            }
            Ok(())
        }
    };
    let medians = take_turns(
        rounds,
        async |samples| {
            samples.push(per_second(CLIENTS, CYCLES, ours).await?);
            Ok(())
        },
        async |samples| {
            samples.push(per_second(CLIENTS, CYCLES, updates).await?);
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::PerSecond))
}
