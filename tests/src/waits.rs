//! Waits that end when they say, whatever the lock service does.

use std::time::Duration;

use lock_core::{
    ErrorKind, LockManager,
    backend::{Clock, SystemClock},
};

const WAIT: Duration = Duration::from_secs(1);

/// By how much a wait may be late if nothing else keeps the machine busy; less than the time that a
/// manager gives a lock service for a last answer.
const SLACK: Duration = Duration::from_millis(300);

/// How often the machine may be busy.
const TRIES: usize = 4;

/// How long one look asks, at most, and what a busy machine adds.
const LOOK: Duration = Duration::from_secs(7);

/// Waits for a resource while the lock service does not answer, or nobody listens at its address;
/// then takes one look.
///
/// # Panics
/// If a wait ends before it is over, or all of them end later than they said.
pub async fn ends_when_it_says(locks: &LockManager) {
    let mut late = Vec::new();
    while late.len() < TRIES {
        let asked = SystemClock.now();
        let waited = locks.acquire("waits").wait(WAIT).await.map(drop);
        let took = SystemClock.now().since(asked);
        assert_eq!(
            waited.map_err(|error| error.kind()),
            Err(ErrorKind::Unavailable)
        );
        assert!(took >= WAIT, "{took:?}");
        if took < WAIT + SLACK {
            break;
        }
        late.push(took);
    }
    assert!(late.len() < TRIES, "{late:?}");

    let asked = SystemClock.now();
    let look = locks.try_acquire("waits").await.map(drop);
    let took = SystemClock.now().since(asked);
    assert_eq!(
        look.map_err(|error| error.kind()),
        Err(ErrorKind::Unavailable)
    );
    assert!(took < LOOK, "one look asked for {took:?}");
}
