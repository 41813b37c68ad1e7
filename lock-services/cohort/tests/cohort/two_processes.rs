//! The cohort as its user sees it: two processes with a line each, one lock service, and a clock
//! that moves only when it is told to.

use std::{
    future::{IntoFuture, poll_fn},
    num::NonZeroU32,
    pin::Pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use futures_util::future::join_all;
use lock_core::{
    Clock, Error, ErrorKind, FencingToken, Forced, Holder, InitialToken, LeaseGuard, LockBackend,
    LockManager, LostReason, Operation, Outcome, Released, ResourceName, Ttl,
    memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, Gate, ManualClock, Until};
use palisade_cohort::Cohort;

const TTL: Ttl = Ttl::secs(10);
/// More than a driver needs for a request.
const TURNS: usize = 10;
const PASSES: NonZeroU32 = NonZeroU32::new(4).unwrap();

struct World {
    clock: ManualClock,
    service: Arc<MemoryBackend>,
    ours: Process,
    theirs: Process,
}

/// A manager with a cohort, and what lies between it and the service.
struct Process {
    locks: LockManager,
    wire: Chaos,
}

type Acquiring<'a> = Pin<Box<dyn Future<Output = Result<LeaseGuard, Error>> + Send + 'a>>;

fn world() -> World {
    let clock = ManualClock::new();
    let timer: Arc<dyn Clock> = Arc::new(clock.clone());
    let initial = InitialToken::At(FencingToken::MIN);
    let service = Arc::new(MemoryBackend::new(Arc::clone(&timer), initial));
    let process = || {
        let wire = Chaos::new(Arc::<MemoryBackend>::clone(&service), Arc::clone(&timer));
        let cohort = Cohort::new(Arc::new(wire.clone()), Arc::clone(&timer), PASSES);
        let builder = LockManager::builder().clock(Arc::clone(&timer));
        let locks = builder.build(cohort);
        Process {
            locks: locks.unwrap(),
            wire,
        }
    };
    World {
        ours: process(),
        theirs: process(),
        clock,
        service,
    }
}

fn resource() -> ResourceName {
    ResourceName::new("r").unwrap()
}

impl Process {
    async fn acquire(&self) -> LeaseGuard {
        self.locks.acquire("r").ttl(TTL).await.unwrap()
    }

    /// An acquire that is in line.
    async fn in_line(&self) -> Acquiring<'_> {
        let mut acquiring = self.locks.acquire("r").ttl(TTL).into_future();
        assert!(is_pending(&mut acquiring).await, "it has to wait");
        acquiring
    }

    /// Several in line, behind a guard that is about to go. They are asked for together.
    async fn line(&self, waiters: usize) -> (LeaseGuard, Vec<Acquiring<'_>>) {
        let first = self.acquire().await;
        let mut line = Vec::new();
        for _ in 0..waiters {
            line.push(self.in_line().await);
        }
        (first, line)
    }

    fn requests(&self, operation: Operation) -> usize {
        self.wire.counts(operation).requests
    }
}

impl World {
    async fn is_free(&self) -> bool {
        let inspection = self.service.inspect(&resource()).await.unwrap();
        inspection.holder.is_none()
    }

    async fn force_release(&self) -> FencingToken {
        let seen = self.service.inspect(&resource()).await.unwrap();
        let token = seen.holder.unwrap().token;
        match self
            .service
            .force_release(&resource(), token)
            .await
            .unwrap()
        {
            Forced::Ended { revocation } => revocation,
            Forced::NotHeld => panic!("it is held"),
        }
    }

    /// Lets the other tasks run until it is so.
    async fn until(&self, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        for _ in 0..10_000 {
            if condition().await {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("never: {what}");
    }
}

/// Polls once, and gives the drivers their turns.
async fn is_pending(acquiring: &mut Acquiring<'_>) -> bool {
    let pending = poll_fn(|cx| Poll::Ready(acquiring.as_mut().poll(cx).is_pending())).await;
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
    }
    pending
}

/// Takes its turn, and says which token it had.
async fn turn(acquiring: Acquiring<'_>) -> u64 {
    let guard = acquiring.await.unwrap();
    let token = guard.token().get();
    guard.release().await.unwrap();
    token
}

#[tokio::test]
async fn a_process_passes_by_no_more_often_than_it_may() {
    let world = world();
    let served = Mutex::new(Vec::new());
    let first = world.ours.acquire().await;
    let turns = |process| {
        let (world, served) = (&world, &served);
        async move {
            let process: &Process = if process == 0 {
                &world.ours
            } else {
                &world.theirs
            };
            let acquiring = process.locks.acquire("r").ttl(TTL).into_future();
            let guard = acquiring.await.unwrap();
            served.lock().unwrap().push(std::ptr::from_ref(process));
            guard.release().await.unwrap();
        }
    };
    let turns = join_all((0..24).map(|number| turns(number % 2)));
    let (_, released) = tokio::join!(turns, first.release());
    released.unwrap();
    let served = served.into_inner().unwrap();
    assert_eq!(served.len(), 24);
    let runs: Vec<_> = served
        .chunk_by(|one, next| one == next)
        .map(<[_]>::len)
        .collect();
    assert!(runs.iter().all(|run| *run <= 4), "{runs:?}");
    assert!(runs.len() < 12, "nothing was passed on: {runs:?}");
}

#[tokio::test]
async fn after_a_release_by_force_tokens_still_rise() {
    let world = world();
    let (first, mut line) = world.ours.line(3).await;
    let granted = async {
        first.release().await.unwrap();
        line.remove(0).await.unwrap()
    };
    let holder = granted.await;
    // Two more tokens are reserved. The operator ends the shared lease, and another process gets
    // the lock.
    let revocation = world.force_release().await;
    assert!(revocation.get() > holder.token().get() + 2);
    let rival = world.theirs.acquire().await;
    assert!(rival.token() > revocation);
    // This one begins after the rival's grant was returned.
    let late = world.ours.in_line().await;
    drop(line.pop());
    let second = line.pop().unwrap();
    let rivals_token = rival.token();
    let ((), second, late, _) = tokio::join!(
        async {
            holder.release().await.unwrap();
        },
        async {
            let guard = second.await.unwrap();
            let token = guard.token();
            drop(guard);
            token
        },
        async {
            let guard = late.await.unwrap();
            let token = guard.token();
            drop(guard);
            token
        },
        rival.release(),
    );
    // It was in the queue before the shared lease was asked for: its token may be old, and the
    // store refuses it.
    assert!(second < revocation);
    assert!(
        late > rivals_token,
        "{late} was reserved before {rivals_token}"
    );
}

/// Catches: a shared lease is renewed by nobody, or passed on although it is old.
#[tokio::test]
async fn the_watchdog_keeps_a_shared_lease_up() {
    let world = world();
    let (first, mut line) = world.ours.line(2).await;
    first.release().await.unwrap();
    let holder = line.remove(0).await.unwrap();
    for _ in 0..10 {
        let before = holder.remaining().unwrap();
        world.clock.advance(TTL.get() / 3);
        let renewed = async || holder.remaining().unwrap() >= before;
        world.until("renewed", renewed).await;
    }
    // It was held for longer than a shared lease is passed on.
    holder.release().await.unwrap();
    assert_eq!(world.ours.requests(Operation::Release), 2);
    turn(line.remove(0)).await;
    assert!(world.is_free().await);
}

#[tokio::test]
async fn a_lease_that_ran_out_takes_its_tokens_with_it() {
    let world = world();
    let (first, mut line) = world.ours.line(3).await;
    first.release().await.unwrap();
    let holder = line.remove(0).await.unwrap();
    world.ours.locks.freeze_watchdog(true);
    world.clock.advance(TTL.get());
    assert_eq!(holder.lost().await.reason(), LostReason::Expired);
    let tokens = join_all(line.into_iter().map(turn)).await;
    let reserved = holder.token().get() + 2;
    assert!(tokens.iter().all(|token| *token > reserved), "{tokens:?}");
    world.ours.locks.freeze_watchdog(false);
    drop(holder);
    world.ours.locks.shutdown().await;
    assert!(world.is_free().await);
}

/// Catches: with the head of its queue a process goes to the end of the line.
#[tokio::test]
async fn the_process_keeps_its_place_when_the_head_of_its_queue_goes_away() {
    let world = world();
    let (first, mut line) = world.ours.line(2).await;
    let rival = world.theirs.in_line().await;
    first.release().await.unwrap();
    let rival = rival.await.unwrap();
    // The head asks, for both; then comes another one, and the head goes away.
    assert!(is_pending(&mut line[0]).await);
    let last = world
        .theirs
        .locks
        .acquire("r")
        .ttl(TTL)
        .holder(Holder::random());
    let mut last = last.into_future();
    assert!(is_pending(&mut last).await);
    drop(line.remove(0));
    let mut second = line.remove(0);
    assert!(is_pending(&mut second).await);
    rival.release().await.unwrap();
    let second = second.await.unwrap();
    assert_eq!(world.ours.requests(Operation::Acquire), 2);
    let behind = second.token();
    second.release().await.unwrap();
    assert!(last.await.unwrap().token() > behind);
}

/// Catches: the others in the queue wait for an answer that does not come.
#[tokio::test]
async fn a_failed_request_fails_for_all_whom_it_was_for() {
    for fault in [Fault::DropRequest, Fault::DropReply] {
        let world = world();
        let (first, mut line) = world.ours.line(3).await;
        world.ours.wire.next(Operation::Acquire, fault);
        first.release().await.unwrap();
        assert!(is_pending(&mut line[1]).await);
        for answer in join_all(line).await {
            let error = answer.unwrap_err();
            assert_eq!(
                (error.kind(), error.outcome()),
                (ErrorKind::Unavailable, Outcome::Unknown)
            );
        }
        world
            .until("given back", async || world.is_free().await)
            .await;
        world.ours.acquire().await.release().await.unwrap();
        assert_eq!(world.ours.wire.unused(), 0);
    }
}

/// A release that was lost stands in nobody's way.
#[tokio::test]
async fn a_lost_release_is_made_up_for_before_the_next_request() {
    for fault in [Fault::DropRequest, Fault::DropReply] {
        let world = world();
        let guard = world.ours.acquire().await;
        let next = world.ours.in_line().await;
        world.ours.wire.next(Operation::Release, fault);
        // It is sent again, before whatever is sent next.
        assert_eq!(guard.release().await.unwrap(), Released::Released);
        turn(next).await;
        assert!(world.is_free().await);
    }
}

#[tokio::test]
async fn after_a_shutdown_nothing_is_left() {
    let world = world();
    let rival = world.theirs.acquire().await;
    let line = [world.ours.in_line().await, world.ours.in_line().await];
    let (answers, ()) = tokio::join!(join_all(line), world.ours.locks.shutdown());
    for answer in answers {
        assert_eq!(answer.unwrap_err().kind(), ErrorKind::ShutDown);
    }
    rival.release().await.unwrap();
    assert!(world.is_free().await);
}

/// Dropped at any await, whoever it is, an acquire takes nothing with it.
#[tokio::test]
async fn at_every_await_any_waiter_may_go_away() {
    for leaver in 0..3 {
        let mut polls = 0;
        while goes_away(leaver, polls).await {
            polls += 1;
            assert!(polls < 100, "it never completes");
        }
        assert!(polls > 0, "it never waits");
    }
}

/// One of three in line is polled so many times more, then dropped. False if it was done by then.
async fn goes_away(leaver: usize, polls: usize) -> bool {
    let world = world();
    let (first, mut line) = world.ours.line(3).await;
    // Every answer takes its time.
    let gates: Vec<_> = (0..8).map(|_| Gate::closed()).collect();
    for gate in &gates {
        let fault = Fault::DelayReply(Until::Opened(gate.clone()));
        world.ours.wire.next(Operation::Acquire, fault);
    }
    let mut dropped = line.remove(leaver);
    let open = async {
        for gate in &gates {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            gate.open();
        }
    };
    let leave = async move {
        for _ in 0..polls {
            if !is_pending(&mut dropped).await {
                return false;
            }
            tokio::task::yield_now().await;
        }
        true
    };
    let others = join_all(line.into_iter().map(turn));
    let (left, tokens, released, ()) = tokio::join!(leave, others, first.release(), open);
    released.unwrap();
    assert!(tokens.is_sorted() && tokens.len() == 2, "{tokens:?}");
    world
        .until("given back", async || world.is_free().await)
        .await;
    left
}

/// In line here it would get what is left of the process's lease, and nobody would extend that.
#[tokio::test]
async fn who_is_kept_up_for_less_than_a_ttl_gets_all_of_it() {
    let world = world();
    let (first, mut line) = world.ours.line(1).await;
    let short = world.ours.locks.acquire("r").ttl(TTL);
    let mut short = short.max_hold(Duration::ZERO).into_future();
    assert!(is_pending(&mut short).await, "it has to wait");
    line.push(short);
    first.release().await.unwrap();
    let held = line.into_iter().map(async |acquiring| {
        let guard = acquiring.await.unwrap();
        let left = guard.remaining().unwrap();
        world.clock.advance(TTL.get() / 5);
        guard.release().await.unwrap();
        left
    });
    assert_eq!(join_all(held).await, [TTL.get(), TTL.get()]);
}
