//! The memory on the server that resources take when nobody holds them.

use std::time::{Duration, Instant};

use redis::{RedisResult, aio::MultiplexedConnection};

use super::server::Server;
use crate::figure::{BoxError, Measured, Setting, Unit};

const RESOURCES: u32 = 10_000;

/// This many of them are also waited for, so that there are queues.
const WAITED_FOR: u32 = 100;

/// After this time everything that has a time to live is gone.
const FORGOTTEN_MAX: Duration = Duration::from_secs(180);

/// Acquires and releases many resources, and waits until the server has dropped what expires.
pub(super) async fn bytes_per_resource(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = palisade::connect(server.url()).await?;
    let mut connection = server.connect().await?;
    let mut held = Vec::new();
    for number in 0..RESOURCES {
        held.push(locks.acquire(format!("account:{number}")).await?);
    }
    let while_held = bytes_per_key(&mut connection).await?;
    for (number, guard) in (0..).zip(held) {
        if number < WAITED_FOR {
            let next = locks.acquire(guard.resource().clone());
            let (released, next) = tokio::join!(guard.release(), next);
            released?;
            next?.release().await?;
        } else {
            guard.release().await?;
        }
    }
    locks.shutdown().await;
    drop(locks);
    let idle = until_forgotten(&mut connection).await?;
    Ok(Measured {
        ratio: idle,
        ours: idle,
        other: while_held,
        unit: Unit::Bytes,
    })
}

/// The bytes per resource once they are zero, or those that are left at the end of the wait.
async fn until_forgotten(connection: &mut MultiplexedConnection) -> Result<f64, BoxError> {
    let started = Instant::now();
    loop {
        let bytes = bytes_per_key(connection).await?;
        if bytes == 0.0 || started.elapsed() > FORGOTTEN_MAX {
            eprintln!("  looked after {:.0} s", started.elapsed().as_secs_f64());
            return Ok(bytes);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// The memory per resource of all keys except the counters and the configuration.
async fn bytes_per_key(connection: &mut MultiplexedConnection) -> RedisResult<f64> {
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(connection).await?;
    let per_resource = |key: &&String| !key.ends_with(":counter") && !key.ends_with(":config");
    let mut usage = redis::pipe();
    for key in keys.iter().filter(per_resource) {
        usage.cmd("MEMORY").arg("USAGE").arg(key);
    }
    if usage.is_empty() {
        return Ok(0.0);
    }
    let bytes: Vec<Option<u64>> = usage.query_async(connection).await?;
    Ok(bytes.iter().flatten().sum::<u64>() as f64 / f64::from(RESOURCES))
}
