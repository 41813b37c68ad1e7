//! Ten thousand leases that are renewed at once.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use lock_core::{Attempt, LockBackend, RenewRequest, Renewed, SystemClock, Ttl};
use palisade::redis::{RedisBackend, RedisOptions};
use redis::aio::MultiplexedConnection;

use super::server::Server;
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::take_turns,
};

const LEASES: usize = 10_000;

/// The watchdog's number of leases per request, and its number of concurrent requests.
const BATCH: usize = 100;
const BATCHES_AT_ONCE: usize = 3;

const PIPELINE: usize = 1000;

/// Lasts for the whole figure.
const TTL: Ttl = Ttl::secs(600);

/// Held leases, and as many plain keys.
struct Renewals {
    server: Server,
    backend: RedisBackend,
    requests: Vec<RenewRequest>,
    connection: MultiplexedConnection,
}

impl Renewals {
    async fn prepare(setting: Setting) -> Result<Self, BoxError> {
        let server = Server::start(setting.pinning).await?;
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
        let mut connection = server.connect().await?;
        let () = plain_keys.query_async(&mut connection).await?;
        let (options, clock) = (RedisOptions::default(), Arc::new(SystemClock));
        let backend = RedisBackend::connect(server.url(), options, clock).await?;
        Ok(Self {
            server,
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

/// Compared with renewals that check nothing.
pub(super) async fn vs_pexpire(setting: Setting) -> Result<Measured, BoxError> {
    let renewals = Renewals::prepare(setting).await?;
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
    let medians = take_turns(
        setting.rounds,
        async |samples| samples.time(renewals.renew_all()).await,
        async |samples| {
            let all = async {
                for pipeline in &pipelines {
                    let () = pipeline.query_async(&mut connection).await?;
                }
                Ok::<_, BoxError>(())
            };
            samples.time(all).await
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// The effect on another client.
pub(super) async fn stall(setting: Setting) -> Result<Measured, BoxError> {
    let renewals = Renewals::prepare(setting).await?;
    let started = Instant::now();
    renewals.renew_all().await?;
    let as_long = started.elapsed();
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            let pinger = Pinger::start(renewals.server.url())?;
            renewals.renew_all().await?;
            samples.push(pinger.worst_ms()?);
            Ok(())
        },
        async |samples| {
            let pinger = Pinger::start(renewals.server.url())?;
            tokio::time::sleep(as_long).await;
            samples.push(pinger.worst_ms()?);
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_alone(Unit::Millis))
}

/// Another client: it sends the next request as soon as the last one is answered.
struct Pinger {
    over: Arc<AtomicBool>,
    worst: JoinHandle<std::io::Result<Duration>>,
}

impl Pinger {
    fn start(url: &str) -> Result<Self, BoxError> {
        let address = url.strip_prefix("redis://").unwrap_or(url);
        let mut server = TcpStream::connect(address)?;
        server.set_nodelay(true)?;
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let worst = std::thread::spawn(move || {
            let mut worst = Duration::ZERO;
            let mut pong = [0; b"+PONG\r\n".len()];
            while !is_over.load(Ordering::Relaxed) {
                let asked = Instant::now();
                server.write_all(b"PING\r\n")?;
                server.read_exact(&mut pong)?;
                worst = std::cmp::max(worst, asked.elapsed());
            }
            Ok(worst)
        });
        Ok(Self { over, worst })
    }

    fn worst_ms(self) -> Result<f64, BoxError> {
        self.over.store(true, Ordering::Relaxed);
        let worst = self.worst.join().map_err(|_| "the pinging thread failed")?;
        Ok(worst?.as_secs_f64() * 1e3)
    }
}
