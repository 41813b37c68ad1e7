//! ZooKeeper: what a lock costs beside what its nodes cost.

mod server;

use std::{
    cell::{Cell, RefCell},
    time::Instant,
};

use futures_util::future::try_join_all;
use lock_core::{LockManager, Ttl};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

use self::server::Server;
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::{Samples, take_turns},
};

const CYCLES_PER_TURN: u32 = 100;
const HANDOFFS_PER_TURN: u32 = 100;
const WAITERS: usize = 8;

/// A server that has just started is slow: Java compiles what is used often.
const WARM_UP: u32 = 2000;

const TTL: Ttl = Ttl::secs(10);

const fn node(mode: CreateMode) -> CreateOptions<'static> {
    mode.with_acls(Acls::anyone_all())
}

/// Acquire and release, against the creation and the deletion of such a node.
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

/// From the release of one to the grant of the next, against a deletion and its notification.
pub(crate) async fn handoff_vs_watch(setting: Setting) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let locks = LockManager::connect(&server.url()).await?;
    let floor = Floor::connect(&server).await?;
    for _ in 0..WARM_UP / HANDOFFS_PER_TURN {
        handoffs(&locks, &mut Samples::default()).await?;
        for _ in 0..HANDOFFS_PER_TURN {
            floor.notification(&mut Samples::default()).await?;
        }
    }
    let medians = take_turns(
        setting.rounds,
        async |samples| handoffs(&locks, samples).await,
        async |samples| {
            for _ in 0..HANDOFFS_PER_TURN {
                floor.notification(samples).await?;
            }
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// Waiters that hold for no time and get in line again.
async fn handoffs(locks: &LockManager, samples: &mut Samples) -> Result<(), BoxError> {
    let left = Cell::new(HANDOFFS_PER_TURN);
    let released: Cell<Option<Instant>> = Cell::new(None);
    let samples = RefCell::new(samples);
    let waiter = async || {
        while left.get() > 0 {
            let guard = locks.acquire("r").ttl(TTL).await?;
            if let Some(released) = released.take() {
                // What is behind the last ones is no line any more.
                if left.get() > 0 {
                    left.set(left.get() - 1);
                    let took = released.elapsed().as_secs_f64() * 1e6;
                    samples.borrow_mut().push(took);
                }
            }
            released.set(Some(Instant::now()));
            guard.release().await?;
        }
        Ok::<_, lock_core::Error>(())
    };
    try_join_all((0..WAITERS).map(|_| waiter())).await?;
    Ok(())
}

/// What the same client library can do at best.
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

    /// One deletion, until its watch tells of it.
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
