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
    observer::until_within,
    servers::ELECTION,
};
use lock_core::{
    LockManager, Ttl,
    backend::{Runtime, TokioRuntime},
};
use tokio::task::JoinHandle;

const RESOURCES: usize = 2;
const TASKS: u64 = 6;

/// One of this number of sections of a task is paused past the end of its lease and writes
/// nevertheless.
const OVERSLEEPS: u64 = 25;

/// Tasks that add to ledgers under locks, and their answers.
pub(crate) struct Load {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<u64>>,
}

struct Shared {
    ledgers: [Ledger; RESOURCES],
    history: History,
    numbers: AtomicU64,
    over: AtomicBool,
}

impl Load {
    /// Begins. The tasks use the managers in turns.
    pub(crate) fn start(managers: &[LockManager]) -> Self {
        let shared = Arc::new(Shared {
            ledgers: Default::default(),
            history: History::default(),
            numbers: AtomicU64::default(),
            over: AtomicBool::default(),
        });
        let tasks = (0..TASKS)
            .zip(managers.iter().cycle())
            .map(|(task, locks)| {
                let (shared, locks) = (Arc::clone(&shared), locks.clone());
                tokio::spawn(async move { shared.task(&locks, task).await })
            });
        Self {
            tasks: tasks.collect(),
            shared,
        }
    }

    /// Waits for this number of further grants. After an election the tasks also wait for the end
    /// of old sessions.
    pub(crate) async fn until_granted(&self, more: usize) {
        let wanted = self.shared.history.grants() + more;
        until_within(ELECTION, "more grants", async || {
            self.shared.history.grants() >= wanted
        })
        .await;
    }

    /// Ends the load, and checks the answers: tokens are in order and unique, no stale write was
    /// accepted, and no update was lost. The twin, which nothing protects, must have lost updates.
    pub(crate) async fn assert_sound(self) {
        self.shared.over.store(true, Ordering::Relaxed);
        let mut turns = Vec::new();
        for task in self.tasks {
            turns.push(task.await.unwrap());
        }
        let Shared {
            ledgers, history, ..
        } = &*self.shared;
        history.assert_sound();
        let sum = |of: fn(&Ledger) -> usize| ledgers.iter().map(of).sum::<usize>();
        let (accepted, control) = (sum(Ledger::accepted), sum(Ledger::lost_from_twin));
        println!("{} grants, {turns:?}", history.grants());
        println!("{accepted} writes accepted, {control} lost from the twin");
        assert_eq!(sum(Ledger::lost), 0);
        assert!(control > 0, "the control has lost nothing");
        assert!(turns.iter().all(|turns| *turns > 0), "{turns:?}");
    }
}

impl Shared {
    async fn task(&self, locks: &LockManager, task: u64) -> u64 {
        let mut turns = 0;
        while !self.over.load(Ordering::Relaxed) {
            let resource = usize::try_from(task + turns).unwrap() % RESOURCES;
            let oversleeps = (task + turns).is_multiple_of(OVERSLEEPS);
            // An error is an answer, too, but only grants count.
            if self.section(locks, resource, oversleeps).await.is_ok() {
                turns += 1;
            }
        }
        turns
    }

    async fn section(
        &self,
        locks: &LockManager,
        resource: usize,
        oversleeps: bool,
    ) -> Result<(), lock_core::Error> {
        let asked = TokioRuntime.now();
        let ttl = if oversleeps {
            Ttl::millis(200)
        } else {
            Ttl::secs(4)
        };
        let acquire = locks.acquire(format!("r{resource}")).ttl(ttl);
        let guard = acquire.renew(!oversleeps).await?;
        self.history
            .granted(Event::answered(guard.sequencer(), asked));
        let section = self.ledgers[resource].enter(&guard, &self.history).await;
        if oversleeps {
            // The lease of the section ends, and another client goes on.
            guard.lost().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        section.add(number).await;
        guard.release().await.map(drop)
    }
}
