//! ZooKeeper: the cost of a lock compared with the cost of its nodes.

use e2e::servers::ZooKeeper;
use lock_core::Ttl;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

use super::line::{WAITERS, hand_on};
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::{Samples, compare, take_turns},
    pinning::start_server,
};

const CYCLES_PER_TURN: u32 = 100;
const LINES_PER_TURN: usize = 8;

/// A server that has just started is slow: Java only compiles code that is used often.
const WARM_UP: u32 = 2000;

const TTL: Ttl = Ttl::secs(10);

const fn node(mode: CreateMode) -> CreateOptions<'static> {
    mode.with_acls(Acls::anyone_all())
}

/// A server as in production: with the usual compiler of Java, and longer ticks.
fn start() -> Result<ZooKeeper, BoxError> {
    let settings = ["-XX:TieredStopAtLevel=4", "-Xmx256m", "tickTime=2000"];
    start_server(async move || ZooKeeper::start_with(&settings).await)
}

/// Acquire and release, compared with the creation and the deletion of such a node.
pub(super) async fn cycle_vs_floor(rounds: u32) -> Result<Measured, BoxError> {
    let server = start()?;
    let locks = palisade::connect(server.url()).await?;
    let floor = Floor::connect(&server).await?;
    for _ in 0..WARM_UP {
        locks.acquire("r").ttl(TTL).await?.release().await?;
        floor.cycle().await?;
    }
    let ours = async || locks.acquire("r").ttl(TTL).await?.release().await;
    let nodes = async || floor.cycle().await;
    let medians = compare(rounds, CYCLES_PER_TURN, ours, nodes).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// The time from the release of one holder to the grant of the next, compared with a deletion and
/// its notification.
pub(super) async fn handoff_vs_watch(rounds: u32) -> Result<Measured, BoxError> {
    let server = start()?;
    let locks = palisade::connect(server.url()).await?;
    let floor = Floor::connect(&server).await?;
    let mut warm_up = Samples::default();
    for _ in 0..WARM_UP {
        locks.acquire("r").ttl(TTL).await?.release().await?;
        floor.notification(&mut warm_up).await?;
    }
    for _ in 0..LINES_PER_TURN {
        hand_on(&locks, TTL, &mut warm_up).await?;
    }
    let medians = take_turns(
        rounds,
        async |samples| {
            for _ in 0..LINES_PER_TURN {
                hand_on(&locks, TTL, samples).await?;
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

/// The best possible result of the same client library.
struct Floor {
    client: Client,
}

impl Floor {
    async fn connect(server: &ZooKeeper) -> Result<Self, BoxError> {
        let client = Client::connect(&server.servers()).await?;
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
