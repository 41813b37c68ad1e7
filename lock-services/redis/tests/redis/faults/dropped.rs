//! Every operation is dropped at each of its awaits, alone and with a waiter behind it in the
//! queue.

use std::{
    future::{Future, IntoFuture},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use e2e::observer::until;
use lock_core::{
    Attempt, Holder, LeaseGuard, LockManager, Metadata, Released, ResourceName, Ttl,
    backend::{AcquireRequest, AttemptRef, LockBackend, LockBackendExt, TokioRuntime, Wait},
};
use lock_testing::DropAt;
use palisade_redis::RedisBackend;
use tokio::{task::JoinHandle, time::timeout};

use crate::faults::world::{World, is_free, options};

/// The ttl is far longer than a case, so a lease that ends earlier was ended by a client.
const TTL: Ttl = Ttl::secs(600);
const PATIENCE: Duration = Duration::from_secs(20);

/// The notes that distinguish the waiters.
const RIVAL: &str = "rival";
const CANCELLED: &str = "cancelled";

/// The circumstances of a drop.
struct Round {
    world: World,
    /// Whether a waiter is in the queue behind the operation.
    contended: bool,
    /// Whether the server has run the request before the drop. A future that is dropped at once has
    /// not even sent it.
    executed: bool,
    polls: usize,
}

impl Round {
    /// Polls a future as often as the round says, and drops it. Returns its answer, if there was
    /// one by then.
    async fn drop_later<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        let answer = DropAt::waiting(self.polls).poll(future.as_mut()).await;
        if self.executed && answer.is_none() {
            // A round trip later the server has run the request. Except for cancels, this look is
            // on the same connection, behind the request.
            is_free(&self.world.locks, "r").await;
        }
        answer
    }
}

/// A waiter in the queue, if the case has one. It gives the lock back at once.
struct Rival(Option<JoinHandle<()>>);

impl Rival {
    async fn behind(round: &Round) -> Self {
        let world = &round.world;
        if !round.contended {
            return Self(None);
        }
        let rival = world.rival.clone();
        let task = tokio::spawn(async move {
            let guard = rival.acquire("r").ttl(TTL).metadata(RIVAL).await;
            guard.unwrap().release().await.unwrap();
        });
        until_in_line(world, RIVAL).await;
        Self(Some(task))
    }

    /// Checks that the waiter gets its turn, and that nothing holds the resource after it.
    async fn has_its_turn(self, locks: &LockManager) {
        if let Some(task) = self.0 {
            timeout(PATIENCE, task).await.expect("its turn").unwrap();
        }
        until("nothing is left", async || is_free(locks, "r").await).await;
    }
}

/// Waits until a waiter with this note is in the queue.
async fn until_in_line(world: &World, note: &str) {
    until("in line", async || {
        let mut found = false;
        for line in world.observer.keys("*:waiters:r").await {
            let waiters = world.observer.values(&line).await;
            found |= waiters.iter().any(|waiter| waiter.ends_with(note));
        }
        found
    })
    .await;
}

/// Runs a case with one await more each time, until it completes.
async fn at_every_await(case: impl AsyncFn(&Round) -> bool) {
    let mut round = Round {
        world: World::new().await,
        contended: false,
        executed: false,
        polls: 1,
    };
    for (contended, executed) in [(false, false), (false, true), (true, false), (true, true)] {
        (round.contended, round.executed, round.polls) = (contended, executed, 1);
        while !case(&round).await {
            round.polls += 1;
            assert!(round.polls < 1000, "it never completes");
        }
        assert!(round.polls > 1, "it awaits nothing");
    }
    let world = round.world;
    assert!(world.observer.leases("*:lease:*").await.is_empty());
    world.observer.passing_keys().await;
}

async fn held(locks: &LockManager) -> LeaseGuard {
    locks.acquire("r").ttl(TTL).await.unwrap()
}

#[tokio::test]
async fn an_acquire_dropped_at_any_await_leaves_no_lease_and_no_place_in_line() {
    at_every_await(async |round| {
        let world = &round.world;
        let holder = match round.contended {
            true => Some(held(&world.rival).await),
            false => None,
        };
        let acquire = world.locks.acquire("r").ttl(TTL).into_future();
        let dropped = round.drop_later(acquire);
        let give_way = async {
            let rival = Rival::behind(round).await;
            if let Some(holder) = holder {
                holder.release().await.unwrap();
            }
            rival
        };
        let (answer, rival) = tokio::join!(dropped, give_way);
        let completed = answer.is_some();
        drop(answer);
        rival.has_its_turn(&world.rival).await;
        completed
    })
    .await;
}

#[tokio::test]
async fn a_renewal_dropped_at_any_await_leaves_the_lease_to_its_holder() {
    at_every_await(async |round| {
        let world = &round.world;
        let guard = held(&world.locks).await;
        let rival = Rival::behind(round).await;
        let answer = round.drop_later(guard.renew(TTL)).await;
        assert!(!is_free(&world.rival, "r").await);
        assert_eq!(guard.release().await.unwrap(), Released::Released);
        rival.has_its_turn(&world.rival).await;
        answer.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_release_dropped_at_any_await_can_be_sent_again() {
    at_every_await(async |round| {
        let world = &round.world;
        let lease = world.locks.acquire("r").ttl(TTL).detached().await.unwrap();
        let lease = lease.granted().unwrap().sequencer;
        let rival = Rival::behind(round).await;
        let answer = round.drop_later(world.locks.release(&lease)).await;
        let again = world.locks.release(&lease).await.unwrap();
        assert_eq!(again, Released::Released);
        rival.has_its_turn(&world.rival).await;
        answer.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_release_of_a_guard_dropped_at_any_await_is_finished_by_the_watchdog() {
    at_every_await(async |round| {
        let world = &round.world;
        let guard = held(&world.locks).await;
        let rival = Rival::behind(round).await;
        let answer = round.drop_later(guard.release()).await;
        rival.has_its_turn(&world.rival).await;
        answer.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_cancel_dropped_at_any_await_can_be_sent_again() {
    for waiting in [false, true] {
        at_every_await(async |round| cancelled(round, waiting).await).await;
    }
}

/// Cancels an attempt that was granted, or an attempt that waits. Returns true if the first cancel
/// completed.
async fn cancelled(round: &Round, waiting: bool) -> bool {
    let world = &round.world;
    let backend = backend(world).await;
    let attempt = AttemptRef::new(
        &TokioRuntime,
        ResourceName::new("r").unwrap(),
        Holder::random(),
    );
    let mut request = AcquireRequest::new(attempt, TTL);
    let holder = if waiting {
        let holder = held(&world.rival).await;
        request.wait = Wait::Forever;
        request.metadata = Some(Metadata::new(CANCELLED).unwrap());
        tokio::select! {
            answer = backend.acquire(&request) => panic!("it is held, and yet: {answer:?}"),
            () = until_in_line(world, CANCELLED) => {}
        }
        Some(holder)
    } else {
        let answer = backend.acquire(&request).await.unwrap();
        assert!(matches!(answer, Attempt::Granted(_)));
        None
    };
    let rival = Rival::behind(round).await;
    let answer = round.drop_later(backend.cancel(&request.attempt)).await;
    backend.cancel(&request.attempt).await.unwrap();
    if let Some(holder) = holder {
        holder.release().await.unwrap();
    }
    rival.has_its_turn(&world.rival).await;
    let late = backend.acquire(&request).await;
    assert!(late.is_err(), "a late request was answered: {late:?}");
    assert!(is_free(&world.rival, "r").await, "a ghost holds it");
    answer.is_some()
}

async fn backend(world: &World) -> RedisBackend {
    let runtime = Arc::new(TokioRuntime);
    RedisBackend::connect(options(world.server.url()), runtime)
        .await
        .unwrap()
}
