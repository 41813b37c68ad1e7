use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use lock_core::{LockManager, ResourceName, Ttl};
use tokio::sync::Mutex;

use crate::{figure::BoxError, paired::Samples};

/// The number of waiters in one line.
pub(super) const WAITERS: usize = 8;

/// The time in which the waiters set their watches.
const SETTLE: Duration = Duration::from_millis(20);

/// A line that gets shorter with each hand-off. A sample is the time from the moment a release is
/// sent until the next waiter has the lock.
pub(crate) async fn hand_on(
    locks: &LockManager,
    ttl: Ttl,
    samples: &mut Samples,
) -> Result<(), BoxError> {
    let released = Mutex::new(Instant::now());
    let took_us = Mutex::new(Vec::new());
    let first = locks.acquire("r").ttl(ttl).await?;
    let waiters = (0..WAITERS).map(async |_| {
        let guard = locks.acquire("r").ttl(ttl).await?;
        let mut released = released.lock().await;
        let took = released.elapsed().as_secs_f64() * 1e6;
        took_us.lock().await.push(took);
        *released = Instant::now();
        drop(released);
        guard.release().await?;
        Ok::<_, BoxError>(())
    });
    let start = async {
        // All waiters are in line and watch before the first hand-off.
        let resource = ResourceName::new("r")?;
        while locks.inspect(&resource).await?.waiters != Some(WAITERS as u64) {}
        tokio::time::sleep(SETTLE).await;
        *released.lock().await = Instant::now();
        first.release().await?;
        Ok::<_, BoxError>(())
    };
    tokio::try_join!(try_join_all(waiters), start)?;
    for took_us in took_us.into_inner() {
        samples.push(took_us);
    }
    Ok(())
}
