//! Wake-ups that the network loses.

use std::time::Duration;

use lock_core::{Attempt, Error, FencingToken, LockManager};

use crate::{
    observer::until,
    proxy::{Fault, Proxy},
};

/// How long a waiter may take until it is served by a new connection and a look. This is less than
/// the time until leases and places run out, because then the waiter would be served anyway.
const SERVED: Duration = Duration::from_secs(8);

/// A waiter whose wake-up was lost with its connection is served all the same, and another waiter
/// behind it, too. `locks` go through the proxy, `rival` does not.
///
/// # Errors
/// The first error.
///
/// # Panics
/// If no reply was lost, or a waiter is not served, or two have the lease.
pub async fn a_lost_wake_up_is_made_up_for(
    locks: &LockManager,
    rival: &LockManager,
    proxy: &Proxy,
) -> Result<(), Error> {
    let name = format!("wakes:{:016x}", rand::random::<u64>());
    // A channel is there once an attempt has waited.
    let holder = rival.acquire(&*name).await?;
    let releases = async {
        until_waiting(rival, &name, 1).await;
        holder.release().await
    };
    tokio::try_join!(waits(locks, rival, &name), releases)?;

    let holder = rival.acquire(&*name).await?;
    let first = holder.token();
    let loses = async {
        until_waiting(rival, &name, 2).await;
        let before = proxy.dropped();
        proxy.inflict(Fault::DropReplies);
        holder.release().await?;
        until("the wake-up is lost", async || proxy.dropped() > before).await;
        proxy.inflict(Fault::Cut);
        Ok(())
    };
    let (second, third, ()) = tokio::try_join!(
        waits(locks, rival, &name),
        waits(locks, rival, &name),
        loses
    )?;
    assert!(first < second && first < third && second != third);
    until("nothing is left", async || {
        let left = rival.inspect(&*name).await;
        left.is_ok_and(|left| left.holder.is_none() && left.waiters.unwrap_or(0) == 0)
    })
    .await;
    Ok(())
}

async fn until_waiting(rival: &LockManager, name: &str, many: u64) {
    until("they are in the queue", async || {
        let seen = rival.inspect(name).await;
        seen.is_ok_and(|seen| seen.waiters == Some(many))
    })
    .await;
}

/// Waits, has the lease alone, and releases it.
async fn waits(
    locks: &LockManager,
    rival: &LockManager,
    name: &str,
) -> Result<FencingToken, Error> {
    let acquire = locks.acquire(name).wait(Duration::MAX).into_future();
    let served = tokio::time::timeout(SERVED, acquire).await;
    let guard = served.expect("the waiter is served")?;
    let other = rival.acquire(name).try_acquire().await?;
    assert!(matches!(other, Attempt::Held { .. }), "{other:?}");
    let token = guard.token();
    guard.release().await?;
    Ok(token)
}
