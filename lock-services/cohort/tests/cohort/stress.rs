//! Real threads and a real clock: a few processes with many tasks each, some of which lose
//! patience.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lock_core::{
    ErrorKind, InitialToken, LockBackend, LockManager, ResourceName, SystemClock, Ttl,
    memory::MemoryBackend,
};
use palisade_cohort::Cohort;
use tokio::task::JoinSet;

const PROCESSES: usize = 3;
const TASKS: usize = 16;
const TURNS: usize = 100;

/// What the lock protects, and what it has seen.
#[derive(Default)]
struct Protected {
    busy: AtomicBool,
    tokens: Mutex<Vec<u64>>,
}

impl Protected {
    async fn touch(&self, token: u64) {
        assert!(!self.busy.swap(true, Ordering::SeqCst), "two at a time");
        self.tokens.lock().unwrap().push(token);
        tokio::task::yield_now().await;
        self.busy.store(false, Ordering::SeqCst);
    }
}

/// Takes its turns. Every third is impatient, every fifth drops its guard instead of releasing it.
async fn task(locks: LockManager, protected: Arc<Protected>, number: usize) -> usize {
    let mut served = 0;
    for turn in 0..TURNS {
        let mut acquire = locks.acquire("r").ttl(Ttl::secs(60));
        if (number + turn).is_multiple_of(3) {
            acquire = acquire.wait(Duration::from_micros(200));
        }
        match acquire.await {
            Ok(guard) => {
                protected.touch(guard.token().get()).await;
                served += 1;
                if (number + turn).is_multiple_of(5) {
                    drop(guard);
                } else {
                    guard.release().await.unwrap();
                }
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WaitTimeout, "{error}"),
        }
    }
    served
}

/// Catches: what only threads that really run at once can do.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_of_several_processes_are_served_one_at_a_time_in_the_order_of_their_tokens() {
    let clock = Arc::new(SystemClock);
    let service = Arc::new(MemoryBackend::new(clock, InitialToken::Clock));
    let protected = Arc::new(Protected::default());
    let processes: Vec<_> = (0..PROCESSES)
        .map(|_| {
            let service = Arc::<MemoryBackend>::clone(&service);
            let cohort = Cohort::new(service, Arc::new(SystemClock), Cohort::PASSES);
            LockManager::builder().build(cohort).unwrap()
        })
        .collect();
    let mut tasks = JoinSet::new();
    for number in 0..PROCESSES * TASKS {
        let locks = processes[number % PROCESSES].clone();
        tasks.spawn(task(locks, Arc::clone(&protected), number));
    }
    let served: usize = tasks.join_all().await.into_iter().sum();
    for locks in processes {
        locks.shutdown().await;
    }

    let tokens = std::mem::take(&mut *protected.tokens.lock().unwrap());
    assert!(tokens.is_sorted(), "tokens fell");
    let different: HashSet<_> = tokens.iter().collect();
    assert_eq!(different.len(), served, "a token was returned twice");
    assert!(served > PROCESSES * TASKS * TURNS / 2, "{served}");
    let left = service.inspect(&ResourceName::new("r").unwrap()).await;
    assert_eq!(left.unwrap().holder, None, "somebody has kept it");
}
