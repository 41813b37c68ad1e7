//! The server is killed under load, or shut down as for an upgrade. No lease and no accepted write
//! is lost, and no token is issued twice.

use std::{
    future::IntoFuture,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use e2e::servers::{DatabaseServer, until};
use fenced_store::FenceError;
use lock_core::{FencingToken, LeaseGuard, LockManager, ResourceName, Ttl};
use tokio::time::timeout;

use crate::{
    bank::{Bank, Server},
    in_a_database::until_waiting,
};

const PATIENCE: Duration = Duration::from_secs(30);
const TTL: Ttl = Ttl::secs(20);

/// A lease with this ttl has ended before the server is up again.
const SHORT: Ttl = Ttl::millis(200);

/// A server that a test stops.
pub(crate) trait Crashing: Server {
    /// The number of times that the server stops.
    const ROUNDS: usize;

    fn start() -> impl Future<Output = DatabaseServer> + Send;

    /// Ends the server without the writes that were not flushed, or in some rounds in another way.
    fn stop(server: &DatabaseServer, round: usize) -> impl Future<Output = ()> + Send;
}

async fn manager(server: &DatabaseServer) -> LockManager {
    palisade::connect(server.url()).await.unwrap()
}

fn r() -> ResourceName {
    ResourceName::new("r").unwrap()
}

async fn holder_of(locks: &LockManager) -> Option<FencingToken> {
    let seen = locks.inspect(&r()).await.unwrap();
    seen.holder.map(|holder| holder.token)
}

async fn acquire(locks: LockManager) -> LeaseGuard {
    let acquire = locks.acquire("r").ttl(TTL).into_future();
    timeout(PATIENCE, acquire)
        .await
        .expect("an answer")
        .unwrap()
}

/// Waits with a pool of its own, because the other pools have connections to the server that was
/// stopped.
async fn until_waits<S: Server>(url: &str) {
    let pool = S::durable(url).await;
    until_waiting::<S>(&pool, "r", 1).await;
    pool.close().await;
}

/// In each round one client holds, one waits, one is paused past the end of its lease, and others
/// write all the time.
pub(crate) async fn a_crash_loses_no_lease_and_waiters_are_served_after_it<S: Crashing>() {
    let server = S::start().await;
    let (bank, stale) = (
        Arc::new(Bank::<S>::open(server.url(), "account:1").await),
        Bank::<S>::open(server.url(), "account:2").await,
    );
    let (locks, others) = (manager(&server).await, manager(&server).await);
    let over = Arc::new(AtomicBool::new(false));
    let workers = bank.work(vec![locks.clone(), others.clone(), others.clone()], &over);
    let mut last = None;
    for round in 0..S::ROUNDS {
        let paused = stale.pause(&locks, SHORT).await;
        let guard = acquire(locks.clone()).await;
        assert!(Some(guard.token()) > last, "round {round}");
        let next = tokio::spawn(acquire(others.clone()));
        until_waits::<S>(server.url()).await;
        S::stop(&server, round).await;
        server.start_again().await;
        until("it answers", async || locks.inspect(&r()).await.is_ok()).await;
        let held = holder_of(&locks).await;
        assert_eq!(held, Some(guard.token()), "round {round}");
        let first = guard.token();
        guard.release().await.unwrap();
        let next = next.await.unwrap();
        assert!(next.token() > first, "round {round}");
        last = Some(next.token());
        next.release().await.unwrap();

        stale.overtake(&others).await;
        let refused = paused.goes_on(&stale).await.unwrap_err();
        assert!(matches!(refused, FenceError::Stale { .. }), "{refused:?}");
    }
    over.store(true, Ordering::Relaxed);
    workers.join_all().await;
    let written = bank.assert_sound().await;
    println!(
        "{} stops, {written} writes, {} accepted",
        S::ROUNDS,
        bank.accepted()
    );
    assert!(bank.accepted() > S::ROUNDS, "hardly anybody wrote");
    assert_eq!(stale.assert_sound().await, S::ROUNDS);
    // The control.
    let rounds = i64::try_from(S::ROUNDS).unwrap();
    assert_eq!(stale.lost_from_twin().await, rounds);
}

/// Makes a named test of each case.
macro_rules! crash_cases {
    ($server:ty) => {
        $crate::crashes::crash_cases!($server:
            a_crash_loses_no_lease_and_waiters_are_served_after_it,
        );
    };
    ($server:ty: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::crashes::$case::<$server>().await;
            }
        )*
    };
}
pub(crate) use crash_cases;
