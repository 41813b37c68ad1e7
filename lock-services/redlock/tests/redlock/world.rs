use std::{sync::Arc, time::Duration};

use e2e::{load::Load, observer::until, servers::RedlockServers};
use futures_util::future::join_all;
use lock_core::{
    Error, FencingToken, LockManager, Released, Ttl,
    backend::{Runtime, TokioRuntime},
};
use palisade_redlock::{HealProgress, NodeState};
use tokio::{sync::oneshot, task::JoinHandle};

/// The time limit for events that must come. Events are far quicker.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The longest lease in tests that heal nodes, because healing takes that long.
pub(crate) const SHORT: Ttl = Ttl::secs(2);

/// This number of nodes, in service for leases of up to a minute.
pub(crate) async fn provisioned(count: usize) -> RedlockServers {
    in_service(RedlockServers::start(count).await, Ttl::secs(60)).await
}

pub(crate) async fn in_service(servers: RedlockServers, longest: Ttl) -> RedlockServers {
    let provisioned = servers.provision(longest).await;
    provisioned.unwrap();
    servers
}

pub(crate) async fn connect(servers: &RedlockServers) -> LockManager {
    palisade::connect(servers.url()).await.unwrap()
}

/// Acquires a free resource and gives it back. Returns its token.
pub(crate) async fn cycle(locks: &LockManager, resource: &str) -> FencingToken {
    let guard = locks.acquire(resource).ttl(SHORT).await.unwrap();
    let token = guard.token();
    assert_eq!(guard.release().await.unwrap(), Released::Released);
    token
}

/// Heals a node to the end. Returns whether there was anything to do.
pub(crate) async fn heal(servers: &RedlockServers, node: usize) -> Result<bool, Error> {
    let nodes = servers.operated();
    nodes.heal(servers.nodes()[node].address(), |_| {}).await
}

/// Heals a node until it only waits for leases that may go on, and then drops the healing. Returns
/// the number of counters that were made.
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
    let nodes = servers.operated();
    tokio::select! {
        biased;
        done = nodes.heal(servers.nodes()[node].address(), progress) => {
            panic!("it did not wait: {done:?}");
        }
        told = told => told.unwrap(),
    }
    all
}

/// The states of the nodes, in the order of the URL.
pub(crate) async fn states(servers: &RedlockServers) -> Vec<NodeState> {
    let status = servers.operated().status().await;
    status.into_iter().map(|node| node.state).collect()
}

/// Clients that add to ledgers under locks until `end` is called.
pub(crate) struct Clients {
    pub(crate) load: Arc<Load<2>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Starts this number of clients, each with connections of its own.
    pub(crate) async fn start(url: &str, clients: usize) -> Self {
        let load = Arc::new(Load::default());
        let mut tasks = Vec::new();
        for _ in 0..clients {
            let locks = palisade::connect(url).await.unwrap();
            tasks.push(tokio::spawn(client(Arc::clone(&load), locks)));
        }
        Self { load, tasks }
    }

    /// Waits until this number of further grants was returned.
    pub(crate) async fn go_on(&self, grants: usize) {
        let history = &self.load.history;
        let before = history.grants();
        until("more grants", async || history.grants() >= before + grants).await;
    }

    /// Stops the clients. Checks that all their grants and writes are possible.
    pub(crate) async fn end(self) -> Arc<Load<2>> {
        self.load.stop();
        let ended = tokio::time::timeout(PATIENCE, join_all(self.tasks)).await;
        for client in ended.expect("a client is stuck") {
            client.unwrap();
        }
        self.load.assert_sound();
        self.load
    }
}

/// One client. An acquire that fails because too few nodes answer is tried again, because these
/// tests are about grants.
async fn client(load: Arc<Load<2>>, locks: LockManager) {
    while !load.is_over() {
        let (number, resource) = load.next();
        let asked = TokioRuntime.now();
        let acquire = locks.acquire(format!("r{resource}")).ttl(SHORT);
        let Ok(guard) = acquire.wait(Duration::from_secs(5)).await else {
            continue;
        };
        let section = load.enter(resource, &guard, asked).await;
        // The pauses are long enough for another client to come in between, if that is possible.
        for _ in 0..5 {
            pause().await;
        }
        section.add(number).await;
        drop(guard.release().await);
    }
}

/// Pauses for up to 4 ms, as a garbage collector does.
pub(crate) async fn pause() {
    let micros = 4000.0 * rand::random::<f64>();
    tokio::time::sleep(Duration::from_secs_f64(micros / 1e6)).await;
}
