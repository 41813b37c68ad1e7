//! Processes that die or stand still while they hold or wait, and the delay for the others.

use std::time::Duration;

use e2e::{
    observer::{Observer, until},
    process::Process,
    servers::Redis,
};
use futures_util::future::join_all;
use lock_core::{
    FencingToken, LeaseGuard, LockManager, Released, ResourceName, Ttl,
    backend::{Moment, Runtime, TokioRuntime},
};
use palisade_redis::QUEUE_TTL;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::timeout};

/// How a process fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// SIGKILL.
    Killed,
    /// SIGSTOP. The process goes on later without noticing the stop.
    Stopped,
}

const FAILURES: [Failure; 2] = [Failure::Killed, Failure::Stopped];

/// A process that cannot answer delays the others by about a second, however many waiters it has.
const ONE_PAUSE: Duration = Duration::from_secs(1);

/// The time limit for an event that takes a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// Far longer than a test.
const LONG: Ttl = Ttl::secs(600);

struct World {
    locks: LockManager,
    server: Redis,
}

impl World {
    async fn new() -> Self {
        let server = Redis::start().await;
        let locks = palisade::connect(server.url()).await.unwrap();
        Self { locks, server }
    }

    /// A process in one of the modes of `e2e-worker`.
    fn worker(&self, mode: &str, ttl: Ttl, more: &[&str]) -> Process {
        let ttl_ms = ttl.as_millis().to_string();
        let lock = ["--lock", self.server.url()];
        let resource = ["--resource", "r", "--ttl-ms", &ttl_ms];
        let arguments = [&[mode], &lock[..], &resource[..], more].concat();
        Process::spawn("e2e-worker", arguments)
    }

    /// A process that is in the queue with several acquisitions.
    async fn line(&self) -> Process {
        let mut worker = self.worker("line", LONG, &["--hold-ms", "1"]);
        let _ready: Value = worker.event().await;
        worker
    }

    fn waiter(&self) -> JoinHandle<LeaseGuard> {
        let locks = self.locks.clone();
        tokio::spawn(async move { locks.acquire("r").ttl(LONG).await.unwrap() })
    }

    async fn until_in_line(&self, waiters: u64) {
        let resource = ResourceName::new("r").unwrap();
        until("in line", async || {
            let seen = self.locks.inspect(&resource).await.unwrap();
            seen.waiters == Some(waiters)
        })
        .await;
    }
}

async fn fail(process: &mut Process, failure: Failure) {
    match failure {
        Failure::Killed => process.kill().await,
        Failure::Stopped => process.pause().await,
    }
}

/// One turn of a process in the queue, by its output.
#[derive(Debug, Deserialize)]
struct Turn {
    granted: Option<usize>,
    token: FencingToken,
    at_ns: u64,
}

impl Turn {
    fn at(&self) -> Moment {
        Moment::from_origin(Duration::from_nanos(self.at_ns))
    }
}

#[tokio::test]
async fn a_holder_that_fails_costs_the_next_one_its_lease_and_no_more() {
    let ttl = Ttl::secs(1);
    for failure in FAILURES {
        let world = World::new().await;
        let mut worker = world.worker("hold", ttl, &[]);
        let held: Value = worker.event().await;
        let waiter = world.waiter();
        world.until_in_line(1).await;
        fail(&mut worker, failure).await;
        let failed = TokioRuntime.now();
        let next = timeout(PATIENCE, waiter).await.expect("its turn").unwrap();
        let took = TokioRuntime.now().since(failed);
        assert!(took < 5 * ttl.get(), "{failure:?}: {took:?}");
        assert!(next.token().get() > held["acquired"].as_u64().unwrap());
        if failure == Failure::Stopped {
            worker.resume();
            worker.send(&"release").await;
            let told: Value = worker.event().await;
            assert_eq!(told, json!({ "lost": true, "released": "NotHolder" }));
        }
        assert_eq!(next.release().await.unwrap(), Released::Released);
    }
}

#[tokio::test]
async fn a_client_that_fails_at_the_head_of_the_line_costs_the_others_one_pause() {
    const OTHERS: u64 = 5;
    for failure in FAILURES {
        for waiters in [1, 20] {
            let world = World::new().await;
            let held = world.locks.acquire("r").await.unwrap();
            let mut worker = world.line().await;
            for number in 0..waiters {
                worker.send(&number).await;
            }
            world.until_in_line(waiters).await;
            let mut others = Vec::new();
            for other in 1..=OTHERS {
                others.push(world.waiter());
                world.until_in_line(waiters + other).await;
            }

            fail(&mut worker, failure).await;
            let started = TokioRuntime.now();
            let last = held.token();
            held.release().await.unwrap();
            let others = join_all(others.into_iter().map(async |other| {
                let guard = other.await.unwrap();
                let token = guard.token();
                guard.release().await.unwrap();
                token
            }));
            let tokens = timeout(PATIENCE, others).await.expect("the line moves on");
            let took = TokioRuntime.now().since(started);
            println!("{failure:?} with {waiters} waiters: {took:?}");
            assert!(
                took < 5 * ONE_PAUSE,
                "{failure:?}, {waiters} waiters: {took:?}"
            );
            assert!(tokens.is_sorted() && tokens[0] > last, "{tokens:?}");
            if failure == Failure::Stopped {
                // The server sees at once that a killed process has gone.
                assert!(took > ONE_PAUSE / 2, "it cost nothing: was it in line?");
                all_get_their_turn(&mut worker, waiters, tokens[tokens.len() - 1]).await;
            } else {
                // No process is left to clean up, so the keys have to expire by themselves.
                let left = Observer::of(world.server.url()).await.passing_keys().await;
                assert!(left.iter().all(|(_, left)| *left <= QUEUE_TTL), "{left:?}");
            }
        }
    }
}

/// Lets a stopped process go on. Its acquisitions have lost only time.
async fn all_get_their_turn(worker: &mut Process, waiters: u64, mut last: FencingToken) {
    worker.resume();
    let mut granted = 0;
    while granted < waiters {
        let turn: Turn = worker.event().await;
        if turn.granted.is_some() {
            assert!(turn.token > last, "{turn:?} after {last}");
            last = turn.token;
            granted += 1;
        }
    }
}

#[tokio::test]
async fn waiters_of_several_processes_are_served_in_the_order_in_which_they_came() {
    const PROCESSES: usize = 4;
    const WAITERS: usize = 64;
    let world = World::new().await;
    let held = world.locks.acquire("r").ttl(LONG).await.unwrap();
    let mut workers = Vec::new();
    for _ in 0..PROCESSES {
        workers.push(world.line().await);
    }
    for arrival in 0..WAITERS {
        workers[arrival % PROCESSES].send(&arrival).await;
        world.until_in_line(arrival as u64 + 1).await;
    }
    let before = held.token();
    held.release().await.unwrap();

    let mut turns = Vec::new();
    for (process, worker) in workers.iter_mut().enumerate() {
        let mut left = WAITERS / PROCESSES;
        while left > 0 {
            let turn: Turn = worker.event().await;
            if let Some(number) = turn.granted {
                turns.push((number * PROCESSES + process, turn));
                left -= 1;
            }
        }
    }
    turns.sort_by_key(|(_, turn)| turn.token);
    let arrivals: Vec<_> = turns.iter().map(|(arrival, _)| *arrival).collect();
    assert!(arrivals.is_sorted(), "served as {arrivals:?}");
    assert_eq!(turns.len(), WAITERS);
    assert!(turns[0].1.token > before);
    // Each lease is held until the next one is granted, so tokens and times have the same order.
    assert!(turns.is_sorted_by_key(|(_, turn)| turn.at()));
    assert!(turns.is_sorted_by(|(_, one), (_, next)| one.token < next.token));
    for mut worker in workers {
        assert!(worker.finish().await.success());
    }
}
