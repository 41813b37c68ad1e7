use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use e2e::{
    history::{Event, History},
    observer::until,
};
use lock_core::{
    LockManager, Outcome, Ttl,
    backend::{Runtime, TokioRuntime},
};
use tokio::task::JoinHandle;

use crate::topologies::world::RESOURCE;

/// Clients that take turns at [`RESOURCE`] until they are stopped, and their answers.
pub(crate) struct Turns {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    history: History,
    releases_unknown: AtomicUsize,
    stopped: AtomicBool,
}

impl Turns {
    pub(crate) fn start(clients: impl IntoIterator<Item = LockManager>) -> Self {
        let shared = Arc::new(Shared::default());
        let clients = clients
            .into_iter()
            .map(|locks| tokio::spawn(take_turns(locks, Arc::clone(&shared))))
            .collect();
        Self { shared, clients }
    }

    /// Waits for this number of further grants.
    pub(crate) async fn until_granted(&self, more: usize) {
        let history = &self.shared.history;
        let wanted = history.grants() + more;
        until("more grants", async || history.grants() >= wanted).await;
    }

    /// Stops the clients and checks their tokens. No token comes twice, and each is above all
    /// tokens that were returned before its request. Returns the number of releases without an
    /// answer.
    pub(crate) async fn stop(self) -> usize {
        self.shared.stopped.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.unwrap();
        }
        self.shared.history.assert_sound();
        self.shared.releases_unknown.load(Ordering::Relaxed)
    }
}

async fn take_turns(locks: LockManager, shared: Arc<Shared>) {
    while !shared.stopped.load(Ordering::Relaxed) {
        let asked = TokioRuntime.now();
        // The ttl is short, so that a lost release does not delay the others.
        let guard = locks.acquire(RESOURCE).ttl(Ttl::secs(2)).await.unwrap();
        let granted = Event::answered(guard.sequencer(), asked);
        shared.history.granted(granted);
        if let Err(error) = guard.release().await {
            assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
            println!("unknown: {error}");
            shared.releases_unknown.fetch_add(1, Ordering::Relaxed);
        }
    }
}
