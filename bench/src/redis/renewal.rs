//! Ten thousand leases that are renewed at once.

use std::sync::Arc;

use e2e::servers::Redis;
use futures_util::{StreamExt, stream};
use lock_core::{
    Attempt, Ttl,
    backend::{LockBackend, RenewRequest, Renewed, TokioRuntime},
};
use palisade::redis::RedisBackend;
use redis::aio::MultiplexedConnection;

use super::floor::connect;
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::compare,
    pinning::start_server,
};

const LEASES: usize = 10_000;

/// The watchdog's number of leases per request, and its number of concurrent requests.
const BATCH: usize = 100;
const BATCHES_AT_ONCE: usize = 3;

const PIPELINE: usize = 1000;

/// A ttl that lasts for the whole figure.
const TTL: Ttl = Ttl::secs(600);

/// Held leases, and as many plain keys.
struct Renewals {
    _server: Redis,
    backend: RedisBackend,
    requests: Vec<RenewRequest>,
    connection: MultiplexedConnection,
}

impl Renewals {
    async fn prepare() -> Result<Self, BoxError> {
        let server = start_server(Redis::start)?;
        let locks = palisade::connect(server.url()).await?;
        let mut requests = Vec::with_capacity(LEASES);
        let mut plain_keys = redis::pipe();
        for number in 0..LEASES {
            let lease = locks.acquire(format!("account:{number}")).ttl(TTL);
            let Attempt::Granted(lease) = lease.detached().await? else {
                return Err("a lease of a fresh server is held".into());
            };
            requests.push(RenewRequest::new(lease.sequencer, TTL));
            plain_keys.set(format!("plain:{number}"), "").ignore();
        }
        let mut connection = connect(server.url()).await?;
        let () = plain_keys.query_async(&mut connection).await?;
        let backend = RedisBackend::connect(server.url(), Arc::new(TokioRuntime)).await?;
        Ok(Self {
            _server: server,
            backend,
            requests,
            connection,
        })
    }

    /// Renews all leases as the watchdog does.
    async fn renew_all(&self) -> Result<(), BoxError> {
        let mut answered = stream::iter(self.requests.chunks(BATCH))
            .map(|batch| self.backend.renew(batch))
            .buffer_unordered(BATCHES_AT_ONCE);
        while let Some(answers) = answered.next().await {
            for answer in answers {
                if answer? == Renewed::NotHolder {
                    return Err("a lease was lost".into());
                }
            }
        }
        Ok(())
    }
}

/// Our renewals, compared with renewals that check nothing.
pub(super) async fn vs_pexpire(rounds: u32) -> Result<Measured, BoxError> {
    let renewals = Renewals::prepare().await?;
    let mut connection = renewals.connection.clone();
    let pipelines: Vec<_> = (0..LEASES)
        .collect::<Vec<_>>()
        .chunks(PIPELINE)
        .map(|numbers| {
            let mut pipeline = redis::pipe();
            for number in numbers {
                pipeline
                    .pexpire(format!("plain:{number}"), 600_000)
                    .ignore();
            }
            pipeline
        })
        .collect();
    let expire_all = async || {
        for pipeline in &pipelines {
            let () = pipeline.query_async(&mut connection).await?;
        }
        Ok::<_, BoxError>(())
    };
    let medians = compare(rounds, 1, async || renewals.renew_all().await, expire_all).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}
