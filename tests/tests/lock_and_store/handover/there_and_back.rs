//! Clients and zombies that go on all the while, there and back again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use e2e::servers::until;
use fenced_store::{FenceError, FencedLockError, FencedLocks};
use lock_core::{Attempt, ErrorKind, LockManager, Sequencer};
use sqlx::Postgres;
use tokio::task::JoinSet;

use crate::handover::{
    command::migrated,
    tally::{RESOURCE, Read, Tally},
    world::{Service, World},
};

/// The state that clients and zombies share.
struct Run {
    tally: Tally,
    numbers: AtomicI64,
    over: AtomicBool,
    /// How many writes the zombie tried with leases of the old service, and how many were let
    /// through.
    tried: AtomicU64,
    let_through: AtomicU64,
    /// The old service was replaced: its earlier leases are worth nothing from then on.
    was_replaced: AtomicBool,
    /// The old service is not the current one: none of its leases is worth anything.
    is_replaced: AtomicBool,
    /// The leases that the old service had granted to the zombie by then.
    new_leases: AtomicU64,
}

impl Run {
    fn number(&self) -> i64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    async fn writes(&self, more: usize) {
        let aim = self.tally.written() + more;
        until("clients write", || async { self.tally.written() >= aim }).await;
    }
}

/// Deposits under a lease of the current service. The client goes to the other service when an
/// error says that its service is not the current one.
async fn client(run: Arc<Run>, services: [FencedLocks<Postgres>; 2]) {
    let mut place = 0;
    while !run.is_over() {
        match deposit(&run, &services[place]).await {
            Ok(()) => {}
            Err(error) if is_elsewhere(&error) => place = 1 - place,
            // The handover shut the client out in the middle of a section.
            Err(FencedLockError::Store(error)) if error.is_fenced() => {}
            Err(FencedLockError::Lock(error)) if error.kind() == ErrorKind::WaitTimeout => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn is_elsewhere(error: &FencedLockError) -> bool {
    match error {
        FencedLockError::Store(error) => matches!(error, FenceError::WrongIssuer { .. }),
        _ => false,
    }
}

async fn deposit(run: &Run, service: &FencedLocks<Postgres>) -> Result<(), FencedLockError> {
    let guard = service
        .acquire(RESOURCE)
        .wait(Duration::from_secs(5))
        .await?;
    let read = run.tally.read(guard.sequencer()).await?;
    // Time for other clients to come in between, if they can.
    tokio::time::sleep(Duration::from_millis(2)).await;
    run.tally
        .write(guard.sequencer(), read, run.number())
        .await?;
    guard.release().await?;
    Ok(())
}

/// A client of the old service that does not know of the handover: a zombie. It tries to write with
/// every lease that it ever had and with the numbers that it read then. It also tries to get
/// another lease.
async fn zombie(run: Arc<Run>, old: LockManager, mut had: Vec<(Sequencer, Read)>) {
    let of_before = had.len();
    while !run.is_over() {
        let was_replaced = run.was_replaced.load(Ordering::SeqCst);
        let is_replaced = run.is_replaced.load(Ordering::SeqCst);
        for (place, (grant, read)) in had.iter().enumerate() {
            let claimed = run.tally.claim(grant).await;
            let written = run.tally.write(grant, read.clone(), run.number()).await;
            if is_replaced || was_replaced && place < of_before {
                run.tried.fetch_add(1, Ordering::Relaxed);
                let through = u64::from(claimed.is_ok()) + u64::from(written.is_ok());
                run.let_through.fetch_add(through, Ordering::Relaxed);
            }
        }
        match old.try_acquire(RESOURCE).await {
            Ok(Attempt::Granted(guard)) => {
                let grant = guard.sequencer().clone();
                // As long as it may write, it writes like other clients.
                let is_replaced = run.is_replaced.load(Ordering::SeqCst);
                let claimed = run.tally.claim(&grant).await.is_ok();
                if is_replaced && run.is_replaced.load(Ordering::SeqCst) {
                    run.new_leases.fetch_add(1, Ordering::Relaxed);
                    run.let_through
                        .fetch_add(u64::from(claimed), Ordering::Relaxed);
                }
                if claimed && let Ok(read) = run.tally.read(&grant).await {
                    had.push((grant, read));
                    had.truncate(4);
                }
                guard.release().await.unwrap();
            }
            Ok(Attempt::Held { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn zombies_of_the_old_service_are_shut_out_and_nothing_is_lost_there_and_back() {
    there_and_back(World::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn from_redis_to_etcd_and_back_nothing_is_lost_and_zombies_are_shut_out() {
    let world = World::moving_to(Service::etcd("new").await).await;
    there_and_back(world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn from_redis_to_redlock_and_back_nothing_is_lost_and_zombies_are_shut_out() {
    let world = World::moving_to(Service::redlock("new").await).await;
    there_and_back(world).await;
}

/// The tokens of Redis follow the clock, and the tokens of ZooKeeper follow its transactions.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn from_redis_to_zookeeper_and_back_nothing_is_lost_and_zombies_are_shut_out() {
    let world = World::moving_to(Service::zookeeper("new").await).await;
    there_and_back(world).await;
}

/// In the database, grants are claimed in the step that makes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn from_redis_to_the_database_and_back_nothing_is_lost_and_zombies_are_shut_out() {
    there_and_back(World::moving_to_its_database().await).await;
}

async fn there_and_back(world: World) {
    let run = Arc::new(Run {
        tally: Tally::create(&world.store).await,
        numbers: AtomicI64::new(1),
        over: AtomicBool::new(false),
        tried: AtomicU64::new(0),
        let_through: AtomicU64::new(0),
        was_replaced: AtomicBool::new(false),
        is_replaced: AtomicBool::new(false),
        new_leases: AtomicU64::new(0),
    });
    let mut clients = JoinSet::new();
    for _ in 0..3 {
        let services = [
            world.protected(&world.old).await,
            world.protected(&world.new).await,
        ];
        clients.spawn(client(Arc::clone(&run), services));
    }
    run.writes(20).await;
    // One lease that was claimed, and under which a client has read, and one lease that was never
    // claimed.
    let old = world.old.locks().await;
    let claimed = old.acquire(RESOURCE).await.unwrap();
    run.tally.claim(claimed.sequencer()).await.unwrap();
    let read = run.tally.read(claimed.sequencer()).await.unwrap();
    let held = claimed.sequencer().clone();
    claimed.release().await.unwrap();
    let unclaimed = old.acquire(RESOURCE).await.unwrap();
    let late = unclaimed.sequencer().clone();
    unclaimed.release().await.unwrap();
    run.writes(20).await;
    let had = vec![(held, read.clone()), (late, read)];
    let mut zombies = JoinSet::new();
    zombies.spawn(zombie(Arc::clone(&run), old, had));
    run.writes(10).await;

    let there = migrated(&world, &world.old, &world.new).await;
    run.was_replaced.store(true, Ordering::SeqCst);
    run.is_replaced.store(true, Ordering::SeqCst);
    assert_eq!(there["sealed"], 1);
    run.writes(40).await;
    let tried = || run.tried.load(Ordering::Relaxed);
    until("the zombie tries", || async { tried() > 20 }).await;
    let granted = || run.new_leases.load(Ordering::Relaxed);
    until("the old service grants", || async { granted() > 0 }).await;

    // On the way back the leases of the first time are still worth nothing. New ones are good.
    run.is_replaced.store(false, Ordering::SeqCst);
    let before = tried();
    let back = migrated(&world, &world.new, &world.old).await;
    assert!(back["floor"].as_u64() > there["floor"].as_u64());
    run.writes(40).await;
    until("the zombie tries", || async { tried() > before + 10 }).await;
    run.over.store(true, Ordering::SeqCst);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    zombies.join_next().await.unwrap().unwrap();

    assert_eq!(run.let_through.load(Ordering::Relaxed), 0, "stale accepts");
    assert_eq!(run.tally.lost().await, 0, "lost updates");
    assert!(
        run.tally.lost_from_twin().await > 0,
        "the control lost nothing"
    );
    let accepted = run.tally.accepted().await;
    let in_order = accepted.is_sorted_by_key(|write| write.token);
    assert!(in_order, "an older grant wrote after a later one");
    let mut issuers: Vec<_> = accepted.into_iter().map(|write| write.issuer).collect();
    issuers.dedup();
    assert_eq!(issuers, ["old", "new", "old"], "both wrote at one time");
}
