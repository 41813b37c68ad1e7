use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use e2e::{
    load::Load,
    observer::{Observer, until},
    servers::Redis,
};
use futures_util::future::join_all;
use lock_core::{
    LockManager, ResourceName, Ttl,
    backend::{Runtime, TokioRuntime},
};
use palisade_redis::QUEUE_TTL;
use rand::RngExt;
use tokio::{runtime::Handle, time::timeout};

use crate::alone::alone;

const RESOURCES: usize = 4;
const TASKS: usize = 50;
const CYCLES: usize = 40;
const MANAGERS: usize = 4;
/// No key of an idle resource is kept for longer, as the documentation of `redis` says.
const CLEAN_AFTER: Duration = QUEUE_TTL;

/// The end of a cycle.
#[derive(Clone, Copy)]
enum Fate {
    /// Waits for its turn, does its section, and releases.
    Released,
    /// Waits for its turn, does its section, and drops its guard without a release.
    Dropped,
    /// Stops waiting at some moment, or stops holding if it has the lease by then.
    Cancelled(Duration),
    /// Its task is aborted at some moment.
    Aborted(Duration),
}

impl Fate {
    fn random() -> Self {
        let mut random = rand::rng();
        let moment = Duration::from_micros(random.random_range(0..40_000));
        match random.random_range(0..10) {
            0..=2 => Self::Cancelled(moment),
            3 => Self::Aborted(moment),
            4 => Self::Dropped,
            _ => Self::Released,
        }
    }
}

#[derive(Default)]
struct Churn {
    load: Load<RESOURCES>,
    given_up: AtomicUsize,
}

impl Churn {
    async fn task(self: Arc<Self>, locks: LockManager) {
        for _ in 0..CYCLES {
            match Fate::random() {
                Fate::Released => self.section(&locks, true).await,
                Fate::Dropped => self.section(&locks, false).await,
                Fate::Cancelled(moment) => {
                    let section = timeout(moment, self.section(&locks, true)).await;
                    self.count(section.is_err());
                }
                Fate::Aborted(moment) => {
                    let (load, locks) = (Arc::clone(&self), locks.clone());
                    let doomed = tokio::spawn(async move { load.section(&locks, true).await });
                    tokio::time::sleep(moment).await;
                    doomed.abort();
                    self.count(doomed.await.is_err());
                }
            }
        }
    }

    fn count(&self, given_up: bool) {
        self.given_up
            .fetch_add(usize::from(given_up), Ordering::Relaxed);
    }

    async fn section(&self, locks: &LockManager, release: bool) {
        let (number, resource) = self.load.next();
        let asked = TokioRuntime.now();
        let acquire = locks.acquire(format!("r{resource}")).ttl(Ttl::secs(20));
        let guard = acquire.await.unwrap();
        let section = self.load.enter(resource, &guard, asked).await;
        tokio::task::yield_now().await;
        section.add(number).await;
        if release {
            guard.release().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_cycles_with_cancellations_leave_nothing_but_counters() {
    let _alone = alone().await;
    let server = Redis::start().await;
    let observer = Observer::of(server.url()).await;
    let (clients, tasks) = (observer.clients().await, alive_tasks());
    let churn = Arc::new(Churn::default());
    {
        let mut managers = Vec::new();
        for _ in 0..MANAGERS {
            managers.push(palisade::connect(server.url()).await.unwrap());
        }
        let running = managers.iter().cycle().take(TASKS);
        let running = running.map(|locks| tokio::spawn(Arc::clone(&churn).task(locks.clone())));
        for task in join_all(running.collect::<Vec<_>>()).await {
            task.unwrap();
        }
    }
    let given_up = churn.given_up.load(Ordering::Relaxed);
    println!(
        "{} grants, {given_up} of {} given up",
        churn.load.history.grants(),
        TASKS * CYCLES
    );
    assert!(
        given_up > TASKS * CYCLES / 20,
        "hardly anything was cancelled"
    );
    churn.load.assert_sound();

    until("no task is left", async || alive_tasks() == tasks).await;
    until("no connection is left", async || {
        observer.clients().await == clients
    })
    .await;
    until("no lease is left", async || {
        observer.leases("*:lease:*").await.is_empty()
    })
    .await;
    assert!(observer.channels().await.is_empty());
    let later = palisade::connect(server.url()).await.unwrap();
    for resource in 0..RESOURCES {
        let resource = ResourceName::new(format!("r{resource}")).unwrap();
        let seen = later.inspect(&resource).await.unwrap();
        assert_eq!(
            seen.waiters,
            Some(0),
            "somebody is still in line for {resource}"
        );
    }
    let passing = observer.passing_keys().await;
    assert!(!passing.is_empty(), "{given_up} were given up");
    for (key, left) in &passing {
        assert!(*left <= CLEAN_AFTER, "{key} stays for {left:?}");
    }
}

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}
