//! Processes with a cohort on a real Redis server.

use std::{
    future::{IntoFuture, poll_fn},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use e2e::servers::{redis, until};
use futures_util::future::join_all;
use lock_core::{
    BoxFuture, Error, FencingToken, Forced, LeaseGuard, LockBackend, LockManager, LockService,
    Operation, Released, ResourceName, SystemClock, Ttl,
};
use lock_testing::{Chaos, conformance::RealTime};
use palisade_cohort::Cohort;
use palisade_redis::{RedisBackend, RedisOptions};

use crate::joining::Joining;

const TTL: Ttl = Ttl::secs(10);

/// The service as one client process sees it. Those with the same prefix see each other.
async fn service(prefix: &str) -> LockService {
    let options = RedisOptions::default().prefix(prefix);
    let url = redis().await.url();
    let service = RedisBackend::connect(url, options, Arc::new(SystemClock)).await;
    service.unwrap().into()
}

fn prefix() -> String {
    format!("cohort-{:016x}", rand::random::<u64>())
}

/// A process with a cohort, and what counts its requests.
struct Process {
    locks: LockManager,
    wire: Chaos,
}

impl Process {
    async fn start(prefix: &str) -> Self {
        let wire = Chaos::new(service(prefix).await, Arc::new(SystemClock));
        let service = Arc::new(wire.clone());
        let cohort = Cohort::new(service, Arc::new(SystemClock), Cohort::PASSES);
        let locks = LockManager::builder().build(cohort).unwrap();
        Self { locks, wire }
    }

    fn acquire(&self) -> BoxFuture<'_, Result<LeaseGuard, Error>> {
        self.locks.acquire("r").ttl(TTL).into_future()
    }

    fn requests(&self) -> usize {
        let all = [Operation::Acquire, Operation::Release, Operation::Cancel];
        all.map(|operation| self.wire.counts(operation).requests)
            .iter()
            .sum()
    }
}

async fn joined() -> RealTime {
    let cohort = Cohort::new(
        service(&prefix()).await,
        Arc::new(SystemClock),
        Cohort::PASSES,
    );
    RealTime::new(Arc::new(Joining(cohort)))
}

lock_testing::conformance_tests!(redis_joined, joined().await);

/// What a lock protects, as one who sees everything sees it.
#[derive(Default)]
struct Protected {
    busy: AtomicBool,
    /// Who had it, by the number of the process, and with which token.
    served: Mutex<Vec<(usize, u64)>>,
}

impl Protected {
    fn touch(&self, process: usize, token: FencingToken) {
        assert!(!self.busy.swap(true, Ordering::SeqCst), "two at a time");
        self.served.lock().unwrap().push((process, token.get()));
        self.busy.store(false, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_take_turns_of_a_bounded_length_and_tokens_rise() {
    const PROCESSES: usize = 4;
    const TASKS: usize = 16;
    const TURNS: usize = 40;
    let prefix = prefix();
    let processes = join_all((0..PROCESSES).map(|_| Process::start(&prefix))).await;
    let protected = Protected::default();
    let task = async |number: usize| {
        let process = number % PROCESSES;
        for _ in 0..TURNS {
            let guard = processes[process]
                .locks
                .acquire("r")
                .ttl(TTL)
                .await
                .unwrap();
            protected.touch(process, guard.token());
            guard.release().await.unwrap();
        }
    };
    // Until all of them are in line, whoever is has no reason to let others pass.
    let gate = Process::start(&prefix).await;
    let held = gate.acquire().await.unwrap();
    let resource = ResourceName::new("r").unwrap();
    let opens = async {
        until("all processes are in line", || async {
            let waiters = gate.locks.inspect(&resource).await.unwrap().waiters;
            waiters == Some(PROCESSES as u64)
        })
        .await;
        held.release().await.unwrap();
    };
    tokio::join!(join_all((0..PROCESSES * TASKS).map(task)), opens);

    let served = protected.served.into_inner().unwrap();
    assert_eq!(served.len(), PROCESSES * TASKS * TURNS);
    let rise = |pair: &[(usize, u64)]| pair[0].1 < pair[1].1;
    assert!(served.windows(2).all(rise), "tokens fell");
    // At the end some processes have finished, and the others take no turns any more.
    let (contended, _) = served.split_at(served.len() / 2);
    let turns: Vec<_> = contended
        .chunk_by(|one, next| one.0 == next.0)
        .map(<[_]>::len)
        .collect();
    let passes = Cohort::PASSES.get() as usize;
    assert!(turns.iter().all(|turn| *turn <= passes), "{turns:?}");
    let requests: usize = processes.iter().map(Process::requests).sum();
    println!("{requests} requests for {} grants", served.len());
    assert!(requests < served.len(), "{requests} requests");
}

#[tokio::test]
async fn after_a_release_by_force_tokens_still_rise() {
    let prefix = prefix();
    let (ours, theirs) = tokio::join!(Process::start(&prefix), Process::start(&prefix));
    let resource = ResourceName::new("r").unwrap();
    let first = ours.acquire().await.unwrap();
    // Three wait, and are asked for together when the first one is done.
    let mut line: Vec<_> = (0..3).map(|_| ours.acquire()).collect();
    for waiter in &mut line {
        assert!(is_pending(waiter).await);
    }
    first.release().await.unwrap();
    let holder = line.remove(0).await.unwrap();
    let seen = theirs
        .locks
        .inspect(&resource)
        .await
        .unwrap()
        .holder
        .unwrap();
    assert_ne!(seen.fingerprint, holder.sequencer().holder().fingerprint());
    let forced = theirs.wire.force_release(&resource, seen.token).await;
    let Forced::Ended { revocation } = forced.unwrap() else {
        panic!("it is held");
    };
    let reserved = holder.token().get() + 2;
    assert!(revocation.get() > reserved, "{revocation} was reserved");

    let rival = theirs.acquire().await.unwrap();
    assert!(rival.token() > revocation);
    let mut late = ours.acquire();
    assert!(is_pending(&mut late).await);
    drop(line.pop());
    let bound = rival.token();
    let (_, second, late, _) = tokio::join!(
        holder.release(),
        async { line.remove(0).await.unwrap().token() },
        async { late.await.unwrap().token() },
        rival.release(),
    );
    assert!(second.get() <= reserved, "it was in line for that token");
    assert!(late > bound, "{late} was reserved before {bound}");
}

/// A lease that is pushed begins short. The first holder that has it long enough confirms it, for
/// itself and for whoever comes after it.
#[tokio::test]
async fn a_pushed_shared_lease_is_confirmed_for_its_holder() {
    let prefix = prefix();
    let (ours, theirs) = tokio::join!(Process::start(&prefix), Process::start(&prefix));
    let rival = theirs.acquire().await.unwrap();
    let turn = async || {
        let guard = ours.acquire().await.unwrap();
        // Together longer than a lease lasts that is not confirmed.
        tokio::time::sleep(Duration::from_millis(700)).await;
        let left = guard.remaining().unwrap();
        assert!(left > Duration::from_secs(1), "not confirmed: {left:?}");
        let token = guard.token();
        assert_eq!(guard.release().await.unwrap(), Released::Released);
        token
    };
    // The first is asked for alone, the other two together.
    let give_way = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        rival.release().await.unwrap();
    };
    let (first, second, third, ()) = tokio::join!(turn(), turn(), turn(), give_way);
    assert!(first < second);
    assert_eq!(Some(third), second.next(), "it was passed on");
}

async fn is_pending<T>(future: &mut BoxFuture<'_, T>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}
