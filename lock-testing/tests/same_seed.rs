//! A seed repeats a whole run: the random numbers, the sleeps and the holders.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use lock_core::{
    FencingToken, InitialToken, LockManager, Operation, RetryPolicy, Ttl,
    backend::{BoxFuture, Moment, Runtime, support::lock},
    memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, ManualClock};
use tokio::task::JoinSet;

const TTL: Ttl = Ttl::secs(3);
const ROUNDS: usize = 4;
/// The least step of the clock, so that several sleepers wake at once.
const STEP: Duration = Duration::from_millis(250);

/// A manual clock that writes down each sleep and each random number.
#[derive(Clone, Debug)]
struct Traced {
    clock: ManualClock,
    trace: Arc<Mutex<Vec<String>>>,
}

impl Traced {
    fn seeded(seed: u64) -> Self {
        let (clock, trace) = (ManualClock::seeded(seed), Arc::default());
        Self { clock, trace }
    }

    fn tell(&self, what: &str) {
        let line = format!("{:?} {what}", self.clock.now().since_origin());
        lock(&self.trace).push(line);
    }

    /// Moves the clock whenever nothing else moves.
    async fn drive(&self) {
        loop {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            let next = self.clock.next_wake().unwrap();
            let step = std::cmp::max(next.since(self.clock.now()), STEP);
            self.clock.advance(step);
        }
    }
}

impl Runtime for Traced {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn unix_time(&self) -> Duration {
        self.clock.unix_time()
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'_, ()> {
        self.tell(&format!("sleeps until {:?}", moment.since_origin()));
        self.clock.sleep_until(moment)
    }

    fn random(&self) -> u128 {
        let random = self.clock.random();
        self.tell(&format!("draws {random:x}"));
        random
    }
}

/// One client. It loses an answer to an acquire, and renewals. The first client polls, and the last
/// gives up every other acquire.
async fn client(name: usize, service: MemoryBackend, traced: Traced) {
    let runtime: Arc<dyn Runtime> = Arc::new(traced.clone());
    let chaos = Chaos::new(service, Arc::clone(&runtime));
    chaos.next(Operation::Acquire, Fault::DropReply);
    for _ in 0..3 {
        chaos.next(Operation::Renew, Fault::DropRequest);
    }
    let locks = LockManager::builder().build(chaos.clone()).unwrap();
    for round in 0..ROUNDS {
        let acquire = locks.acquire("account").ttl(TTL);
        let acquire = match name {
            0 => acquire.retry(RetryPolicy::exponential(Duration::from_millis(100))),
            _ => acquire,
        };
        let patience = match name == 2 && round % 2 == 0 {
            true => Duration::from_millis(100).mul_f64(runtime.dice()),
            false => Duration::MAX,
        };
        let Some(guard) = runtime.timeout(patience, acquire.into_future()).await else {
            traced.tell(&format!("{name} gives up"));
            continue;
        };
        let guard = guard.unwrap();
        let holder = guard.sequencer().holder();
        traced.tell(&format!("{name} holds {}, {holder:?}", guard.token()));
        runtime.sleep(TTL.get().mul_f64(2.0 * runtime.dice())).await;
        let released = guard.release().await;
        traced.tell(&format!("{name} released: {released:?}"));
    }
    locks.shutdown().await;
}

async fn run(seed: u64) -> Vec<String> {
    let traced = Traced::seeded(seed);
    let initial = InitialToken::At(FencingToken::MIN);
    let service = MemoryBackend::new(Arc::new(traced.clone()), initial);
    // Each client is a task, so that the order of wake-ups is the order of turns.
    let clients = (0..3).map(|name| client(name, service.clone(), traced.clone()));
    let clients: JoinSet<()> = clients.collect();
    tokio::select! {
        biased;
        _ = clients.join_all() => {}
        () = traced.drive() => {}
    }
    lock(&traced.trace).clone()
}

/// Catches: a source of time, random numbers or order that does not come from the runtime.
#[tokio::test]
async fn the_same_seed_gives_the_same_trace() {
    for seed in 0..20 {
        let (trace, again) = (run(seed).await, run(seed).await);
        let first = trace.iter().zip(&again).find(|(one, other)| one != other);
        assert_eq!(first, None, "seed {seed}");
        assert_eq!(trace.len(), again.len());
        let count = |what| trace.iter().filter(|line| line.contains(what)).count();
        assert!(
            count("gives up") >= 1,
            "seed {seed}: no acquire was dropped"
        );
        assert!(count("holds") >= 3 * ROUNDS - 2, "seed {seed}");
        assert!(count("draws") >= 40, "seed {seed}: {}", count("draws"));
        assert_ne!(trace, run(seed + 100).await);
    }
}
