//! Waits that end when they say, whatever the lock service does.

use std::time::Duration;

use lock_core::{Clock, ErrorKind, LockManager, SystemClock};

const WAIT: Duration = Duration::from_secs(1);

/// By how much it may be late on a busy machine.
const SLACK: Duration = Duration::from_secs(2);

/// Waits for a resource while the lock service does not answer, or nobody listens at its address.
///
/// # Panics
/// If that ends before the wait is over, or long after it.
pub async fn ends_when_it_says(locks: &LockManager) {
    let asked = SystemClock.now();
    let error = locks.acquire("waits").wait(WAIT).await;
    let (took, error) = (SystemClock.now().since(asked), error.map(drop));
    let kind = error.map_err(|error| error.kind());
    assert_eq!(kind, Err(ErrorKind::Unavailable));
    assert!(took >= WAIT && took < WAIT + SLACK, "{took:?}");
}
