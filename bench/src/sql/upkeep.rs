//! The size of a lease after many cycles, and the CPU time of waiters while nothing happens.

use std::{fs, sync::Arc, time::Duration};

use e2e::servers::{PgBouncer, PoolMode, until};
use futures_util::future::try_join_all;
use lock_core::{
    LockManager, Ttl,
    backend::{ConnectOptions, TokioRuntime},
};
use palisade::postgres::PostgresBackend;
use sqlx::postgres::PgPoolOptions;
use tokio::time::sleep;

use super::world::World;
use crate::figure::{BoxError, Measured, Unit};

const CYCLES: u32 = 200_000;
const BOUND: u32 = 256 * 1024;

/// The size of a lease with its index. The tombstones are of this minute: none is needed for such
/// cycles.
pub(super) async fn bytes_of_a_lease() -> Result<Measured, BoxError> {
    let world = World::new(1).await?;
    let cycles = format!(
        "DO $$ DECLARE token bigint; BEGIN FOR i IN 1..{CYCLES} LOOP
           SELECT a.token INTO token FROM fenced.acquire('r', 'h', 'a', 60000) a; COMMIT;
           PERFORM fenced.release('r', token, 'h', false); COMMIT;
         END LOOP; END $$"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(cycles))
        .execute(&world.pool)
        .await?;
    let size = "SELECT pg_total_relation_size('fenced.lease'), count(*) FROM fenced.tombstone";
    let (bytes, tombstones): (i64, i64) = sqlx::query_as(size).fetch_one(&world.pool).await?;
    if tombstones > 0 {
        return Err(format!("{tombstones} tombstones, and none is needed").into());
    }
    let bytes = f64::from(u32::try_from(bytes)?);
    let bound = f64::from(BOUND);
    Ok(Measured {
        ratio: bytes / bound,
        ours: bytes,
        other: bound,
        unit: Unit::Bytes,
    })
}

/// The CPU time of all processes of the server.
pub(super) async fn cpu_of_waiters(listening: bool) -> Result<Measured, BoxError> {
    const WAITERS: u64 = 8;
    const WARM_UP: Duration = Duration::from_secs(5);
    const WATCHED: Duration = Duration::from_secs(20);
    let world = World::new(1).await?;
    let pooler = PgBouncer::behind(world.server.url(), PoolMode::Transaction).await;
    let address = match listening {
        true => world.server.url().to_owned(),
        false => pooler.at(world.server.url()),
    };
    // Few sessions, which have executed all statements before they are measured.
    let pool = PgPoolOptions::new()
        .max_connections(2)
        .connect(&address)
        .await?;
    let runtime = Arc::new(TokioRuntime);
    let backend = PostgresBackend::on(pool, ConnectOptions::default(), runtime).await?;
    let locks = LockManager::builder().build(backend)?;
    let held = locks.acquire("r").ttl(Ttl::secs(600)).await?;
    let waiters = (0..WAITERS).map(|_| async { locks.acquire("r").await.map(drop) });
    let watch = async {
        let resource = held.resource();
        until("all wait", || async {
            let now = locks.inspect(resource).await;
            now.is_ok_and(|now| now.waiters == Some(WAITERS))
        })
        .await;
        sleep(WARM_UP).await;
        let before = cpu_seconds(&world).await?;
        sleep(WATCHED).await;
        Ok::<_, BoxError>(cpu_seconds(&world).await? - before)
    };
    tokio::select! {
        biased;
        waited = try_join_all(waiters) => {
            Err(format!("no waiter should get it: {waited:?}").into())
        }
        used = watch => {
            let (used, watched) = (used? * 1e6, WATCHED.as_secs_f64() * 1e6);
            Ok(Measured { ratio: used / watched, ours: used, other: watched, unit: Unit::Micros })
        }
    }
}

/// The CPU time by the scheduler's own count. The ticks of `stat` are wrong for a process that a
/// timer wakes, because such a process runs when a tick is counted.
async fn cpu_seconds(world: &World) -> Result<f64, BoxError> {
    let own = "SELECT pg_backend_pid()";
    let session: i32 = sqlx::query_scalar(own).fetch_one(&world.pool).await?;
    let server = parent(&session.to_string())?;
    let mut nanos = 0;
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().filter(|name| name.parse::<u32>().is_ok());
        // A process may have ended meanwhile.
        let Some(pid) = pid.filter(|pid| parent(pid).is_ok_and(|parent| parent == server)) else {
            continue;
        };
        let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
        let ran = schedstat.split(' ').next().unwrap_or_default();
        nanos += ran.parse::<u64>().unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos).as_secs_f64())
}

/// proc(5): the second field after the name, which may contain anything.
fn parent(pid: &str) -> Result<u32, BoxError> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = stat.rsplit_once(')').ok_or("no name of a process")?;
    let parent = rest.split_whitespace().nth(1).ok_or("too few fields")?;
    Ok(parent.parse()?)
}
