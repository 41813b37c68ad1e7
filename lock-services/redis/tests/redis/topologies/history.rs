use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use lock_core::{Clock, FencingToken, LockManager, Moment, Outcome, SystemClock, Ttl};
use tokio::task::JoinHandle;

use crate::topologies::world::RESOURCE;

/// Clients that take turns at [`RESOURCE`] until they are stopped, and what they were told.
pub(crate) struct Turns {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    grants: Mutex<Vec<Grant>>,
    releases_unknown: AtomicUsize,
    stopped: AtomicBool,
}

struct Grant {
    began: Moment,
    returned: Moment,
    token: FencingToken,
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

    /// Waits for so many grants more.
    pub(crate) async fn until_granted(&self, more: usize) {
        let wanted = self.count() + more;
        e2e::servers::until("more grants", || async { self.count() >= wanted }).await;
    }

    /// Stops them and looks at their tokens: none twice, and each above all that were returned
    /// before it was asked for. Returns how many there were, and how many releases were left
    /// unanswered.
    pub(crate) async fn stop(self) -> (usize, usize) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.unwrap();
        }
        let mut grants = std::mem::take(&mut *self.shared.grants.lock().unwrap());
        grants.sort_by_key(|grant| grant.token);
        for pair in grants.windows(2) {
            assert_ne!(pair[0].token, pair[1].token, "granted twice");
        }
        // From the greatest token down: nothing smaller may have been asked for after the earliest
        // return of what is greater.
        let mut earliest_return = Moment::NEVER;
        for grant in grants.iter().rev() {
            assert!(
                grant.began <= earliest_return,
                "{} came after a greater one",
                grant.token
            );
            earliest_return = std::cmp::min(earliest_return, grant.returned);
        }
        let unknown = self.shared.releases_unknown.load(Ordering::Relaxed);
        (grants.len(), unknown)
    }

    fn count(&self) -> usize {
        self.shared.grants.lock().unwrap().len()
    }
}

async fn take_turns(locks: LockManager, shared: Arc<Shared>) {
    while !shared.stopped.load(Ordering::Relaxed) {
        let began = SystemClock.now();
        // Short, so that a release that was lost does not hold the others up.
        let guard = locks.acquire(RESOURCE).ttl(Ttl::secs(2)).await.unwrap();
        shared.grants.lock().unwrap().push(Grant {
            began,
            returned: SystemClock.now(),
            token: guard.token(),
        });
        if let Err(error) = guard.release().await {
            assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
            println!("unknown: {error}");
            shared.releases_unknown.fetch_add(1, Ordering::Relaxed);
        }
    }
}
