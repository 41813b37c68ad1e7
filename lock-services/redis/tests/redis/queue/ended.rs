//! An acquisition that has ended stays ended, also when others have had the resource since.

use std::time::Duration;

use e2e::observer::until;
use lock_core::{
    ErrorKind, Ttl,
    backend::{LockBackend, LockBackendExt},
};

use crate::queue::world::{World, again, request};

/// A time after which a lease has ended. Only time ends it, so the test has to sleep.
const PAST_TTL: Duration = Duration::from_millis(40);
const TTL: Ttl = Ttl::millis(20);

/// Catches: a lease runs out, another client takes its resource, alone or together with others, and
/// no tombstone is left. Then a late request of the acquisition would be granted.
#[tokio::test]
async fn a_lease_that_ran_out_is_remembered_when_others_took_the_resource() {
    for together in [false, true] {
        let world = World::new().await;
        let client = world.client().await;
        let mut ran_out = request("r");
        ran_out.ttl = TTL;
        client.0.acquire(&ran_out).await.unwrap().granted().unwrap();
        tokio::time::sleep(PAST_TTL).await;
        if together {
            let next = request("r");
            let grants = client.0.acquire_together(std::slice::from_ref(&next)).await;
            let grant = grants.unwrap().granted().unwrap()[0];
            client.release(&next, grant).await;
            let late = client.0.acquire_together(&[again(&ran_out)]).await;
            assert_eq!(late.unwrap_err().kind(), ErrorKind::Released);
        } else {
            let (next, grant) = client.holds("r").await;
            client.release(&next, grant).await;
        }
        let late = client.0.acquire(&again(&ran_out)).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Released, "{together}");
    }
}

#[tokio::test]
async fn marks_are_forgotten_although_older_ones_of_another_kind_are_before_them() {
    let world = World::new().await;
    let client = world.client().await;
    let (suspended, waiters) = (world.key("suspended:r"), world.key("waiters:r"));
    // Waiters that were silent for a long time, and a tombstone behind them.
    let mut suspend = redis::cmd("ZADD");
    suspend.arg(&suspended);
    for number in 0..20 {
        let holder = format!("{number:032x}");
        suspend.arg(1).arg(&holder);
        let details = format!("/0000000000000001:60000::{number}:1:");
        let details = redis::cmd("HSET")
            .arg(&waiters)
            .arg(holder)
            .arg(details)
            .to_owned();
        let () = world.run(&details).await;
    }
    let () = world.run(suspend.arg(2).arg("=old")).await;
    for _ in 0..4 {
        let mut short = request("r");
        short.ttl = TTL;
        until("free", async || {
            let answer = client.0.acquire(&short).await;
            answer.unwrap().granted().is_some()
        })
        .await;
    }
    let left: Vec<String> = world
        .run(redis::cmd("ZRANGE").arg(&suspended).arg(0).arg(-1))
        .await;
    assert_eq!(
        left.len(),
        3,
        "only the marks of those that ran out just now: {left:?}"
    );
    let details: u32 = world.run(redis::cmd("HLEN").arg(&waiters)).await;
    assert_eq!(details, 0);
}
