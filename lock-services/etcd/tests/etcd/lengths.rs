//! Leases that are longer than what was asked for.

use std::time::Duration;

use e2e::servers::etcd;
use lock_core::{Clock, SystemClock, Ttl};

use crate::world::{manager, prefix};

/// The last renewal may be sent just before its `max_hold`, and is one for a whole second.
#[tokio::test]
async fn the_end_of_a_lease_is_counted_with_the_ttl_that_was_granted() {
    let (max_hold, granted) = (Duration::from_secs(10), Duration::from_secs(1));
    let locks = manager(&etcd().await.url(), &prefix()).await;
    let asked = SystemClock.now();
    let acquire = locks.acquire("r").ttl(Ttl::millis(100)).max_hold(max_hold);
    let guard = acquire.await.unwrap();
    let most = guard.remaining_at_most().unwrap().expect("it has a bound");
    assert!(
        SystemClock.now() + most >= asked + max_hold + granted,
        "{most:?}"
    );
    guard.release().await.unwrap();
}
