//! Every operation, dropped at every await that it has, alone and with somebody in line behind it.

use std::{
    future::{Future, IntoFuture, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use e2e::observer::until;
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, Holder, LeaseGuard, LockBackend, LockManager, Metadata,
    Released, ResourceName, SystemClock, Ttl, Wait, redis::RedisBackend,
};
use tokio::{task::JoinHandle, time::timeout};

use crate::world::{World, is_free, options};

/// Far longer than a case: what ends earlier was ended.
const TTL: Ttl = Ttl::secs(600);
const PATIENCE: Duration = Duration::from_secs(20);

/// The notes by which those who wait are told apart.
const RIVAL: &str = "rival";
const CANCELLED: &str = "cancelled";

/// Polls a future that many times and drops it; its answer, if there was one by then.
async fn poll_times<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut future = pin!(future);
    let mut polls = 0;
    poll_fn(|cx| {
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if polls == times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Somebody who waits in line, if the case has one, and gives the lock back at once.
struct Rival(Option<JoinHandle<()>>);

impl Rival {
    async fn behind(world: &World, contended: bool) -> Self {
        if !contended {
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

    /// It gets its turn, and nothing holds the resource after it.
    async fn has_its_turn(self, locks: &LockManager) {
        if let Some(task) = self.0 {
            timeout(PATIENCE, task).await.expect("its turn").unwrap();
        }
        until("nothing is left", async || is_free(locks, "r").await).await;
    }
}

/// Until somebody stands in line whose note this is.
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
async fn at_every_await(case: impl AsyncFn(&World, bool, usize) -> bool) {
    let world = World::new().await;
    for contended in [false, true] {
        let mut polls = 1;
        while !case(&world, contended, polls).await {
            polls += 1;
            assert!(polls < 1000, "it never completes");
        }
        assert!(polls > 1, "it awaits nothing");
    }
    assert!(world.observer.keys("*:lease:*").await.is_empty());
    world.observer.passing_keys().await;
}

async fn held(locks: &LockManager) -> LeaseGuard {
    locks.acquire("r").ttl(TTL).await.unwrap()
}

#[tokio::test]
async fn an_acquire_dropped_at_any_await_leaves_no_lease_and_no_place_in_line() {
    at_every_await(async |world, contended, polls| {
        let holder = match contended {
            true => Some(held(&world.rival).await),
            false => None,
        };
        let acquire = world.locks.acquire("r").ttl(TTL).into_future();
        let dropped = poll_times(acquire, polls);
        let give_way = async {
            let rival = Rival::behind(world, contended).await;
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
    at_every_await(async |world, contended, polls| {
        let guard = held(&world.locks).await;
        let rival = Rival::behind(world, contended).await;
        let renewal = world.locks.renew(guard.sequencer(), TTL);
        let answer = poll_times(renewal, polls).await;
        assert!(!is_free(&world.rival, "r").await);
        assert_eq!(guard.release().await.unwrap(), Released::Released);
        rival.has_its_turn(&world.rival).await;
        answer.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_release_dropped_at_any_await_can_be_sent_again() {
    at_every_await(async |world, contended, polls| {
        let lease = world.locks.acquire("r").ttl(TTL).detached().await.unwrap();
        let lease = lease.granted().unwrap().sequencer;
        let rival = Rival::behind(world, contended).await;
        let answer = poll_times(world.locks.release(&lease), polls).await;
        let again = world.locks.release(&lease).await.unwrap();
        assert_eq!(again, Released::Released);
        rival.has_its_turn(&world.rival).await;
        answer.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_release_of_a_guard_dropped_at_any_await_is_finished_by_the_watchdog() {
    at_every_await(async |world, contended, polls| {
        let guard = held(&world.locks).await;
        let rival = Rival::behind(world, contended).await;
        let answer = poll_times(guard.release(), polls).await;
        rival.has_its_turn(&world.rival).await;
        answer.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_cancel_dropped_at_any_await_can_be_sent_again() {
    for waiting in [false, true] {
        at_every_await(async |world, contended, polls| {
            cancelled(world, contended, polls, waiting).await
        })
        .await;
    }
}

/// Cancels an attempt that was granted, or one that waits. True if the first cancel completed.
async fn cancelled(world: &World, contended: bool, polls: usize, waiting: bool) -> bool {
    let backend = backend(world).await;
    let attempt = AttemptRef::new(ResourceName::new("r").unwrap(), Holder::random());
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
    let rival = Rival::behind(world, contended).await;
    let answer = poll_times(backend.cancel(&request.attempt), polls).await;
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
    let clock = Arc::new(SystemClock);
    RedisBackend::connect(world.server.url(), options(), clock)
        .await
        .unwrap()
}
