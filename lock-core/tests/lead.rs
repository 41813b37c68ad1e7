//! Leading: terms, stepping down, and the leader that observers see.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::join_all};
use lock_core::{
    Error, ErrorKind, InitialToken, LockManager, LostReason, Operation, Ttl,
    backend::{Runtime, support::lock},
    memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, ManualClock, Process};
use tokio::sync::Notify;

const TTL: Ttl = Ttl::secs(6);
const MARGIN: Duration = Duration::from_secs(1);

struct World {
    clock: ManualClock,
    one: Process,
    two: Process,
}

impl World {
    fn new() -> Self {
        let clock = ManualClock::new();
        let service = MemoryBackend::new(Arc::new(clock.clone()), InitialToken::Clock);
        let service = Arc::new(service);
        let (one, two) = (
            Process::start(Arc::clone(&service) as Arc<_>, &clock),
            Process::start(service as Arc<_>, &clock),
        );
        Self { clock, one, two }
    }
}

/// The leader steps down one second before the lock service lets another candidate lead.
#[tokio::test]
async fn a_leader_steps_down_before_its_term_ends() {
    let World { clock, one, two } = World::new();
    let lead = one.locks().lead("scheduler").ttl(TTL).renew(false);
    let term = lead.campaign().await.unwrap();
    let lost = term.lost();
    let mut lost = pin!(lost);
    clock.advance(TTL.get() - MARGIN - Duration::from_millis(1));
    assert!((&mut lost).now_or_never().is_none());
    clock.advance(Duration::from_millis(1));
    let seen = lost.await;
    assert_eq!(
        (seen.token(), seen.reason()),
        (term.token(), LostReason::Expired)
    );
    assert_eq!(term.remaining().unwrap(), MARGIN);
    let other = two.locks().try_acquire("lead:scheduler").await.unwrap();
    assert!(matches!(other, lock_core::Attempt::Held { .. }));
}

/// The section is dropped at its present await, and called again in the next term.
#[tokio::test]
async fn a_section_is_dropped_with_its_term_and_called_in_the_next() {
    let World { clock, one, .. } = World::new();
    let mut tokens = Vec::new();
    let lead = one.locks().lead("scheduler").ttl(TTL);
    let run = lead.run(async |term| {
        tokens.push(term.token());
        if tokens.len() == 1 {
            one.freeze();
            clock.advance(TTL.get());
            one.thaw();
            std::future::pending::<()>().await;
        }
        Ok::<_, Error>(())
    });
    run.await.unwrap();
    assert!(tokens.len() == 2 && tokens[0] < tokens[1], "{tokens:?}");
}

/// The number of steps that sections take whose work becomes ready, after a pause or without a
/// pause.
async fn steps_of_sections(paused: bool) -> u32 {
    let World { clock, one, .. } = World::new();
    let (go_on, entered, steps) = (Notify::new(), AtomicU32::new(0), AtomicU32::new(0));
    let section = async || {
        entered.fetch_add(1, Ordering::Relaxed);
        go_on.notified().await;
        steps.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<()>().await;
        Ok::<_, Error>(())
    };
    let lead = one.locks().lead("scheduler").ttl(TTL);
    let lead = lead.run(async |_| section().await);
    let run = one.locks().acquire("r").ttl(TTL);
    let run = run.run(async |_| section().await);
    let mut both = pin!(async { tokio::join!(lead, run) });
    while entered.load(Ordering::Relaxed) < 2 {
        assert!((&mut both).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    if paused {
        one.freeze();
        clock.advance(TTL.get());
    }
    go_on.notify_waiters();
    assert!((&mut both).now_or_never().is_none());
    steps.load(Ordering::Relaxed)
}

/// Catches: a leader that goes on for one more step, although it could know that its term is over.
#[tokio::test]
async fn a_paused_section_learns_of_its_end_before_it_goes_on() {
    assert_eq!(steps_of_sections(false).await, 2);
    assert_eq!(steps_of_sections(true).await, 0);
}

#[tokio::test]
async fn a_leader_that_resigns_hands_over_to_the_next_in_line() {
    let World { one, two, .. } = World::new();
    let first = one.locks().lead("scheduler").campaign().await.unwrap();
    let next = two.locks().lead("scheduler");
    let mut next = pin!(next.campaign());
    assert!((&mut next).now_or_never().is_none());
    let token = first.token();
    first.resign().await.unwrap();
    let next = next.await.unwrap();
    assert!(next.token() > token);
}

#[tokio::test]
async fn the_leader_is_seen_with_its_address() {
    let World { clock, one, two } = World::new();
    let every = Duration::from_secs(1);
    let mut seen = pin!(two.locks().observe("scheduler", every));
    assert_eq!(seen.next().await.unwrap().unwrap(), None);

    let lead = one.locks().lead("scheduler");
    let lead = lead.ttl(TTL).metadata("10.0.0.7:8080");
    let term = lead.campaign().await.unwrap();
    for leads in [true, false] {
        let mut change = pin!(seen.next());
        assert!((&mut change).now_or_never().is_none());
        clock.advance(every);
        let leader = change.await.unwrap().unwrap();
        assert_eq!(leader.is_some(), leads);
        if let Some(leader) = leader {
            assert_eq!(leader.token, term.token());
            assert_eq!(leader.metadata.unwrap().as_str(), "10.0.0.7:8080");
            one.freeze();
            clock.advance(TTL.get());
        }
    }
}

/// The service is silent at first, and the section fails once.
/// Catches: a pause that does not use the runtime, so that only real time ends it.
#[tokio::test]
async fn a_candidate_pauses_by_the_clock_of_its_lock_service() {
    let silent = Duration::from_secs(15);
    let clock = ManualClock::new();
    let timer: Arc<dyn Runtime> = Arc::new(clock.clone());
    let service = MemoryBackend::new(Arc::clone(&timer), InitialToken::Clock);
    let chaos = Chaos::new(service, timer);
    chaos.always(Operation::Acquire, Fault::DropRequest);
    let locks = LockManager::builder().build(chaos.clone()).unwrap();
    let calls = Mutex::new(Vec::new());
    let lead = locks.lead("scheduler").ttl(TTL);
    let run = lead.run_through(
        |_| true,
        async |_| {
            lock(&calls).push(clock.now());
            match lock(&calls).len() {
                1 => Err(Error::not_applied(ErrorKind::Unavailable)),
                _ => Ok(()),
            }
        },
    );
    let drive = async {
        loop {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            let wake = clock.next_wake().unwrap();
            clock.advance(wake.since(clock.now()));
            if clock.now().since_origin() > silent {
                chaos.calm();
            }
        }
    };
    tokio::select! {
        biased;
        ended = run => ended.unwrap(),
        () = drive => {}
    }
    let calls = lock(&calls);
    assert!(calls[0].since_origin() > silent);
    let pause = calls[1].since(calls[0]);
    let millis = Duration::from_millis;
    assert!((millis(100)..=millis(200)).contains(&pause), "{pause:?}");
}

/// The section fails five times in a row, goes on for a while, and fails again.
/// Catches: a leader whose pauses grow although its section had recovered.
#[tokio::test]
async fn a_section_that_had_recovered_is_called_again_soon() {
    let World { clock, one, .. } = World::new();
    let calls = Mutex::new(Vec::new());
    let run = one.locks().lead("scheduler").ttl(TTL).run_through(
        |_| true,
        async |term| {
            lock(&calls).push(clock.now());
            let call = lock(&calls).len();
            match call {
                6 => term.runtime().sleep(Duration::from_secs(9)).await,
                7 => return Ok(()),
                _ => {}
            }
            Err(Error::not_applied(ErrorKind::Unavailable))
        },
    );
    let drive = async {
        loop {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            let wake = clock.next_wake().unwrap();
            clock.advance(wake.since(clock.now()));
        }
    };
    tokio::select! {
        biased;
        ended = run => ended.unwrap(),
        () = drive => {}
    }
    let calls = lock(&calls);
    let pause = |call: usize| calls[call].since(calls[call - 1]);
    assert!(pause(5) > Duration::from_secs(1), "{:?}", pause(5));
    let last = pause(6) - Duration::from_secs(9);
    assert!(last <= Duration::from_millis(200), "{last:?}");
}

#[tokio::test]
async fn an_invalid_name_is_an_error_at_once() {
    let World { one, .. } = World::new();
    let run = one.locks().lead("a b").run(async |_| Ok::<_, Error>(()));
    assert_eq!(
        run.await.unwrap_err().kind(),
        lock_core::ErrorKind::InvalidInput
    );
}

/// All observers of a name in a process ask together, also those of clones of the manager.
#[tokio::test]
async fn observers_ask_once_per_interval_and_end_with_the_manager() {
    let clock = ManualClock::new();
    let timer: Arc<dyn Runtime> = Arc::new(clock.clone());
    let memory = MemoryBackend::new(Arc::clone(&timer), InitialToken::Clock);
    let service = Chaos::new(memory, Arc::clone(&timer));
    let builder = LockManager::builder();
    let locks = builder.build(service.clone()).unwrap();
    let every = Duration::from_secs(1);
    let observe = || Box::pin(locks.clone().observe("scheduler", every));
    let mut observers: Vec<_> = (0..8).map(|_| observe()).collect();
    for observer in &mut observers {
        assert_eq!(observer.next().await.unwrap().unwrap(), None);
    }
    let lead = locks.lead("scheduler").ttl(TTL);
    let term = lead.campaign().await.unwrap();
    let mut changes: Vec<_> = observers
        .iter_mut()
        .map(|observer| observer.next())
        .collect();
    for change in &mut changes {
        assert!(change.now_or_never().is_none());
    }
    clock.advance(every);
    for change in join_all(changes).await {
        assert_eq!(change.unwrap().unwrap().unwrap().token, term.token());
    }
    assert_eq!(service.counts(Operation::Inspect).requests, 2);

    let ends = join_all(observers.iter_mut().map(|observer| observer.next()));
    let (ends, ()) = tokio::join!(ends, locks.shutdown());
    assert!(ends.iter().all(Option::is_none));
}
