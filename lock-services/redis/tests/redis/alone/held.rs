use std::time::Duration;

use e2e::{
    observer::{Observer, until},
    servers::Redis,
};
use futures_util::{StreamExt, stream};
use lock_core::{LeaseGuard, Ttl};

use crate::alone::alone;

const LOCKS: usize = 10_000;
/// The ttl is so long that the machine may stall for four seconds between two renewals.
const TTL: Ttl = Ttl::secs(6);
/// A time in which each lease would end without a renewal.
const HELD_FOR: Duration = Duration::from_secs(7);
const AT_ONCE: usize = 64;

/// Catches: renewals that fall behind when there are many.
#[tokio::test]
async fn ten_thousand_held_locks_are_renewed_by_one_manager() {
    let _alone = alone().await;
    let server = Redis::start().await;
    let locks = palisade::connect(server.url()).await.unwrap();
    let observer = Observer::of(server.url()).await;
    let forgotten = locks
        .acquire("forgotten")
        .ttl(TTL)
        .renew(false)
        .await
        .unwrap();
    let acquire = |number| {
        let locks = &locks;
        async move { locks.acquire(format!("r{number}")).ttl(TTL).await.unwrap() }
    };
    let guards: Vec<LeaseGuard> = stream::iter(0..LOCKS)
        .map(acquire)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;

    tokio::time::sleep(HELD_FOR).await;
    assert!(forgotten.remaining().is_err(), "leases do not end at all");
    let lost: Vec<_> = guards
        .iter()
        .filter_map(|guard| guard.remaining().err())
        .collect();
    assert!(
        lost.is_empty(),
        "{} are lost, such as {}",
        lost.len(),
        lost[0]
    );
    assert!(observer.leases("*:lease:r*").await.len() == LOCKS);

    drop((guards, forgotten));
    locks.shutdown().await;
    until("all are released", async || {
        observer.leases("*:lease:r*").await.is_empty()
    })
    .await;
}
