//! The wall clock of a Redis server jumps, in both directions, while locks are held and waited for.

use std::{sync::Arc, time::Duration};

use e2e::{
    history::History,
    ledger::Ledger,
    load::Load,
    observer::until,
    servers::{ClockOffset, Redis},
};
use futures_util::future::join_all;
use lock_core::{
    HolderView, LeaseGuard, LockManager, Released, ResourceName, Sequencer, Ttl,
    backend::{Moment, Renewed, Runtime, TokioRuntime},
};
use tokio::time::timeout;

const HOUR: Duration = Duration::from_secs(3600);
const AHEAD: ClockOffset = ClockOffset::Ahead(HOUR);
const BEHIND: ClockOffset = ClockOffset::Behind(HOUR);
const RIGHT: ClockOffset = ClockOffset::Ahead(Duration::ZERO);

/// The time limit for events that must come long before an hour, or a ttl of 10 minutes, is over.
const PATIENCE: Duration = Duration::from_secs(20);
const LONG: Ttl = Ttl::secs(600);

async fn holder(locks: &LockManager) -> Option<HolderView> {
    let resource = ResourceName::new("r").unwrap();
    locks.inspect(&resource).await.unwrap().holder
}

/// Renews a lease to this length, as another process that knows the lease may do.
async fn renew(locks: &LockManager, lease: &Sequencer, ttl: Ttl) {
    let renewed = locks.renew(lease, ttl).await.unwrap();
    assert!(matches!(renewed, Renewed::Renewed(_)), "{renewed:?}");
}

async fn acquired(locks: &LockManager, resource: usize) -> (LeaseGuard, Moment) {
    let asked = TokioRuntime.now();
    let acquire = locks.acquire(format!("r{resource}")).ttl(Ttl::secs(2));
    (acquire.await.unwrap(), asked)
}

async fn task(load: Arc<Load<2>>, locks: LockManager) {
    while !load.is_over() {
        let (number, resource) = load.next();
        let (guard, asked) = acquired(&locks, resource).await;
        let section = load.enter(resource, &guard, asked).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        section.add(number).await;
        guard.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_and_no_client_is_stuck_while_the_clock_jumps() {
    const TASKS: usize = 12;
    const GRANTS_BETWEEN_JUMPS: usize = 100;
    let server = Redis::start_with_own_clock().await;
    let load = Arc::new(Load::<2>::default());
    let paused = palisade::connect(server.url()).await.unwrap();
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let locks = palisade::connect(server.url()).await.unwrap();
        for _ in 0..TASKS / 2 {
            tasks.push(tokio::spawn(task(Arc::clone(&load), locks.clone())));
        }
    }
    for jump in [RIGHT, AHEAD, RIGHT, BEHIND, RIGHT, AHEAD, BEHIND] {
        // If a jump forward ends a lease, its section goes on, and the control loses an update.
        let section = if jump == AHEAD {
            let (guard, asked) = acquired(&paused, 0).await;
            Some(load.enter(0, &guard, asked).await)
        } else {
            None
        };
        server.set_clock(jump);
        let before = load.history.grants();
        until("more grants after a jump", async || {
            load.history.grants() >= before + GRANTS_BETWEEN_JUMPS
        })
        .await;
        if let Some(section) = section {
            let (number, _) = load.next();
            assert!(!section.add(number).await, "a stale write was accepted");
        }
    }
    load.stop();
    let ended = timeout(PATIENCE, join_all(tasks))
        .await
        .expect("a task is stuck");
    for task in ended {
        task.unwrap();
    }
    load.assert_sound();
    assert!(load.lost_from_twins() > 0, "the control has lost nothing");
}

#[tokio::test]
async fn a_lease_that_a_jump_has_ended_is_lost_and_its_holder_cannot_write() {
    let server = Redis::start_with_own_clock().await;
    let locks = palisade::connect(server.url()).await.unwrap();
    let rival = palisade::connect(server.url()).await.unwrap();
    let (ledger, history) = (Ledger::default(), History::default());

    // The lease is renewed every second, so only the jump can end it.
    let guard = locks.acquire("r").ttl(Ttl::secs(3)).await.unwrap();
    let section = ledger.enter(&guard, &history).await;
    let waiter = tokio::spawn(async move { rival.acquire("r").ttl(LONG).await.unwrap() });
    assert!(
        timeout(Duration::from_millis(200), guard.lost())
            .await
            .is_err()
    );
    server.set_clock(AHEAD);
    let next = timeout(PATIENCE, waiter)
        .await
        .expect("the lease has ended")
        .unwrap();
    assert!(next.token() > guard.token());
    assert!(ledger.enter(&next, &history).await.add(1).await);

    // By its own clock the holder still had its lease, so its reaction comes too late.
    timeout(PATIENCE, guard.lost())
        .await
        .expect("the holder learns of it");
    assert!(guard.remaining().is_err());
    assert!(!section.add(2).await, "a stale write was accepted");
    assert_eq!(ledger.lost(), 0);
    assert_eq!(ledger.lost_from_twin(), 1, "the control has lost nothing");
    assert_eq!(guard.release().await.unwrap(), Released::NotHolder);
    assert_eq!(next.release().await.unwrap(), Released::Released);
    history.assert_sound();
}

#[tokio::test]
async fn after_a_jump_back_a_renewal_mends_the_lease_and_a_release_is_passed_on() {
    let server = Redis::start_with_own_clock().await;
    let locks = palisade::connect(server.url()).await.unwrap();
    let ttl = Ttl::secs(10);
    // The lease is renewed only by hand, so that no renewal mends it between the jump and the look.
    let guard = locks.acquire("r").ttl(ttl).renew(false).await.unwrap();
    let rival = locks.clone();
    let waiter = tokio::spawn(async move { rival.acquire("r").ttl(ttl).await.unwrap() });
    server.set_clock(BEHIND);
    let far = holder(&locks).await.unwrap().remaining;
    assert!(far > HOUR, "the clock has not jumped: {far:?}");
    guard.renew(ttl).await.unwrap();
    let mended = holder(&locks).await.unwrap().remaining;
    assert!(mended <= ttl.get(), "{mended:?}");
    server.set_clock(ClockOffset::Behind(2 * HOUR));

    assert_eq!(guard.release().await.unwrap(), Released::Released);
    let next = timeout(PATIENCE, waiter)
        .await
        .expect("it was released")
        .unwrap();
    // The next holder after the jump has a lease of the right length.
    let left = holder(&locks).await.unwrap().remaining;
    assert!(left <= ttl.get(), "{left:?}");
    next.release().await.unwrap();
    assert!(holder(&locks).await.is_none());
}

/// A lease is longer than the longest promise only because of the clock. A renewal keeps the
/// promise.
#[tokio::test]
async fn after_a_jump_back_a_renewal_leaves_the_longest_promise_and_no_more() {
    let server = Redis::start_with_own_clock().await;
    let locks = palisade::connect(server.url()).await.unwrap();
    let lease = locks.acquire("r").ttl(LONG).detached().await.unwrap();
    let lease = lease.granted().unwrap().sequencer;
    let remaining = async || holder(&locks).await.unwrap().remaining;
    for ttl in [30, 300, 30].map(Ttl::secs) {
        renew(&locks, &lease, ttl).await;
        assert!(remaining().await > LONG.get() - PATIENCE, "shortened");
    }
    server.set_clock(BEHIND);
    assert!(remaining().await > HOUR, "the clock has not jumped");
    renew(&locks, &lease, Ttl::secs(30)).await;
    let left = remaining().await;
    assert!(left <= LONG.get(), "not mended: {left:?}");
    assert!(left > LONG.get() - PATIENCE, "shortened: {left:?}");
}
