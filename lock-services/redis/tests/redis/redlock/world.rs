use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use e2e::{
    history::{Event, History},
    ledger::Ledger,
    servers::{RedlockServers, until},
};
use futures_util::future::join_all;
use lock_core::{Clock, Error, FencingToken, LockManager, Released, SystemClock, Ttl};
use palisade_redis::redlock::{HealProgress, NodeState, RedlockOptions};
use tokio::{sync::oneshot, task::JoinHandle};

/// For what must come, far longer than it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The longest lease where nodes are healed: so long that takes.
pub(crate) const SHORT: Ttl = Ttl::secs(2);

/// So many nodes, in service for leases of up to a minute.
pub(crate) async fn provisioned(count: usize) -> RedlockServers {
    in_service(RedlockServers::start(count).await, Ttl::secs(60)).await
}

pub(crate) async fn in_service(servers: RedlockServers, longest: Ttl) -> RedlockServers {
    let provisioned = servers.provision(RedlockOptions::default(), longest).await;
    provisioned.unwrap();
    servers
}

pub(crate) async fn connect(servers: &RedlockServers) -> LockManager {
    palisade::connect(servers.url()).await.unwrap()
}

/// Acquires what nobody holds and gives it back. The token that it was.
pub(crate) async fn cycle(locks: &LockManager, resource: &str) -> FencingToken {
    let guard = locks.acquire(resource).ttl(SHORT).await.unwrap();
    let token = guard.token();
    assert_eq!(guard.release().await.unwrap(), Released::Released);
    token
}

/// Heals a node to the end. Whether there was anything to do.
pub(crate) async fn heal(servers: &RedlockServers, node: usize) -> Result<bool, Error> {
    let nodes = servers.operated(RedlockOptions::default());
    nodes.heal(servers.nodes()[node].address(), |_| {}).await
}

/// Heals a node until it only waits for leases that may go on, and drops that. The counters that
/// were made.
pub(crate) async fn heal_until_it_waits(servers: &RedlockServers, node: usize) -> u64 {
    let (waits, told) = oneshot::channel();
    let (mut waits, mut all) = (Some(waits), 0);
    let progress = |progress| match progress {
        HealProgress::Counters { made, .. } => all = made,
        HealProgress::Quiet(_) => {
            if let Some(waits) = waits.take() {
                waits.send(()).unwrap();
            }
        }
        _ => {}
    };
    let nodes = servers.operated(RedlockOptions::default());
    tokio::select! {
        biased;
        done = nodes.heal(servers.nodes()[node].address(), progress) => {
            panic!("it did not wait: {done:?}");
        }
        told = told => told.unwrap(),
    }
    all
}

/// What the nodes are, in the order of the URL.
pub(crate) async fn states(servers: &RedlockServers) -> Vec<NodeState> {
    let status = servers.operated(RedlockOptions::default()).status().await;
    status.into_iter().map(|node| node.state).collect()
}

/// Tasks that add to ledgers under locks until they are told to stop.
#[derive(Default)]
pub(crate) struct Load {
    pub(crate) ledgers: [Ledger; 2],
    pub(crate) history: History,
    numbers: AtomicU64,
    over: AtomicBool,
}

impl Load {
    /// Starts so many clients, each with connections of its own.
    pub(crate) async fn start(url: &str, clients: usize) -> (Arc<Self>, Vec<JoinHandle<()>>) {
        let load = Arc::new(Self::default());
        let mut tasks = Vec::new();
        for _ in 0..clients {
            let locks = palisade::connect(url).await.unwrap();
            let load = Arc::clone(&load);
            tasks.push(tokio::spawn(async move { load.client(locks).await }));
        }
        (load, tasks)
    }

    /// What fails for want of nodes is tried again: these tests are about what is granted.
    async fn client(&self, locks: LockManager) {
        while !self.over.load(Ordering::Relaxed) {
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let resource = usize::try_from(number).unwrap() % self.ledgers.len();
            let asked = SystemClock.now();
            let acquire = locks.acquire(format!("r{resource}")).ttl(SHORT);
            let Ok(guard) = acquire.wait(Duration::from_secs(5)).await else {
                continue;
            };
            self.history
                .granted(Event::answered(guard.sequencer(), asked));
            let section = self.ledgers[resource].enter(&guard, &self.history).await;
            // Long enough for somebody else to come in between if it can.
            for _ in 0..5 {
                pause().await;
            }
            section.add(number).await;
            drop(guard.release().await);
        }
    }

    /// Waits until so many more grants were returned.
    pub(crate) async fn goes_on(&self, grants: usize) {
        let before = self.history.grants();
        until("more grants", async || {
            self.history.grants() >= before + grants
        })
        .await;
    }

    /// Stops all clients.
    pub(crate) async fn stop(&self, clients: Vec<JoinHandle<()>>) {
        self.over.store(true, Ordering::Relaxed);
        let ended = tokio::time::timeout(PATIENCE, join_all(clients)).await;
        for client in ended.expect("a client is stuck") {
            client.unwrap();
        }
    }

    /// Stops all clients, and says whether what they saw and wrote may have been.
    pub(crate) async fn end(&self, clients: Vec<JoinHandle<()>>) {
        self.stop(clients).await;
        self.history.assert_sound();
        for ledger in &self.ledgers {
            assert_eq!(ledger.lost(), 0, "of {}", ledger.accepted());
            assert!(ledger.accepted() > 0);
        }
    }

    /// What the store without a fence has lost.
    pub(crate) fn lost_from_twins(&self) -> usize {
        self.ledgers.iter().map(Ledger::lost_from_twin).sum()
    }
}

/// Up to 4 ms, as a garbage collector takes.
pub(crate) async fn pause() {
    let micros = 4000.0 * rand::random::<f64>();
    tokio::time::sleep(Duration::from_secs_f64(micros / 1e6)).await;
}
