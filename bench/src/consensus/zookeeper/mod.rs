//! ZooKeeper: the cost of a lock compared with the cost of its nodes.

mod server;

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use lock_core::{LockManager, ResourceName, Ttl};
use tokio::sync::Mutex;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

use self::server::Server;
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::{Samples, take_turns},
};

const CYCLES_PER_TURN: u32 = 100;
const LINES_PER_TURN: usize = 8;
const WAITERS: usize = 8;

/// For the watches of the waiters.
const SETTLE: Duration = Duration::from_millis(20);

/// A server that has just started is slow: Java only compiles code that is used often.
const WARM_UP: u32 = 2000;

const TTL: Ttl = Ttl::secs(10);

const fn node(mode: CreateMode) -> CreateOptions<'static> {
    mode.with_acls(Acls::anyone_all())
}

/// Acquire and release, compared with the creation and the deletion of such a node.
pub(crate) async fn cycle_vs_floor(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = LockManager::connect(&server.url()).await?;
    let floor = Floor::connect(&server).await?;
    for _ in 0..WARM_UP {
        locks.acquire("r").ttl(TTL).await?.release().await?;
        floor.cycle().await?;
    }
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            for _ in 0..CYCLES_PER_TURN {
                let cycle = async { locks.acquire("r").ttl(TTL).await?.release().await };
                samples.time(cycle).await?;
            }
            Ok(())
        },
        async |samples| {
            for _ in 0..CYCLES_PER_TURN {
                samples.time(floor.cycle()).await?;
            }
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// From the release of one to the grant of the next, compared with a deletion and its notification.
pub(crate) async fn handoff_vs_watch(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = LockManager::connect(&server.url()).await?;
    let floor = Floor::connect(&server).await?;
    let mut warm_up = Samples::default();
    for _ in 0..WARM_UP {
        locks.acquire("r").ttl(TTL).await?.release().await?;
        floor.notification(&mut warm_up).await?;
    }
    for _ in 0..LINES_PER_TURN {
        line(&locks, &mut warm_up).await?;
    }
    let medians = take_turns(
        setting.rounds,
        async |samples| {
            for _ in 0..LINES_PER_TURN {
                line(&locks, samples).await?;
            }
            Ok(())
        },
        async |samples| {
            for _ in 0..WAITERS * LINES_PER_TURN {
                floor.notification(samples).await?;
            }
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// A line of eight that gets shorter with each hand-off.
async fn line(locks: &LockManager, samples: &mut Samples) -> Result<(), BoxError> {
    let released = Mutex::new(Instant::now());
    let took_us = Mutex::new(Vec::new());
    let first = locks.acquire("r").ttl(TTL).await?;
    let waiters = (0..WAITERS).map(async |_| {
        let guard = locks.acquire("r").ttl(TTL).await?;
        let mut released = released.lock().await;
        let took = released.elapsed().as_secs_f64() * 1e6;
        took_us.lock().await.push(took);
        *released = Instant::now();
        drop(released);
        guard.release().await?;
        Ok::<_, BoxError>(())
    });
    let start = async {
        // All of them are in line and watch before the line moves.
        let resource = ResourceName::new("r")?;
        while locks.inspect(&resource).await?.waiters != Some(WAITERS as u64) {}
        tokio::time::sleep(SETTLE).await;
        *released.lock().await = Instant::now();
        first.release().await?;
        Ok::<_, BoxError>(())
    };
    tokio::try_join!(try_join_all(waiters), start)?;
    for took_us in took_us.into_inner() {
        samples.push(took_us);
    }
    Ok(())
}

/// The best that the same client library can do.
struct Floor {
    client: Client,
}

impl Floor {
    async fn connect(server: &Server) -> Result<Self, BoxError> {
        let client = Client::connect(&server.address).await?;
        client
            .mkdir("/floor", &node(CreateMode::Persistent))
            .await?;
        Ok(Self { client })
    }

    async fn create(&self) -> Result<String, BoxError> {
        let mode = node(CreateMode::EphemeralSequential);
        let (_, number) = self.client.create("/floor/n-", b"", &mode).await?;
        Ok(format!("/floor/n-{number}"))
    }

    async fn cycle(&self) -> Result<(), BoxError> {
        let path = self.create().await?;
        Ok(self.client.delete(&path, None).await?)
    }

    /// One deletion, until its watch reports it.
    async fn notification(&self, samples: &mut Samples) -> Result<(), BoxError> {
        let path = self.create().await?;
        let (.., watch) = self.client.get_and_watch_data(&path).await?;
        let told = async {
            let (deleted, _) = tokio::join!(self.client.delete(&path, None), watch.changed());
            deleted
        };
        Ok(samples.time(told).await?)
    }
}
