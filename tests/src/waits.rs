//! Waits that end on time, whatever the lock service does.

use std::{ops::RangeInclusive, time::Duration};

use futures_util::future::join_all;
use lock_core::{
    ErrorKind, LockManager,
    backend::{Bounds, Runtime, TokioRuntime},
};

/// By how much a wait may be late if nothing else keeps the machine busy.
const SLACK: Duration = Duration::from_millis(300);

/// How often the machine may be busy.
const TRIES: usize = 4;

/// How an acquire waits, and how long it asks a service that does not answer.
struct Case {
    /// `None` takes one look.
    wait: Option<Duration>,
    ends: RangeInclusive<Duration>,
}

/// Acquires while the lock service does not answer, or has no listener at its address: with each
/// kind of wait at once.
///
/// # Panics
/// If a wait ends too early, or is late in each try, or fails with another error than unavailable.
pub async fn ends_when_it_says(locks: &LockManager) {
    ends_with_a_look_of(Bounds::USUAL.short, locks).await;
}

/// As [`ends_when_it_says`], for a lock service whose look may take longer than others.
///
/// # Panics
/// As [`ends_when_it_says`].
pub async fn ends_with_a_look_of(look: Duration, locks: &LockManager) {
    let Bounds { long, grace, .. } = Bounds::USUAL;
    let (millisecond, second) = (Duration::from_millis(1), Duration::from_secs(1));
    let case = |wait, ends| Case { wait, ends };
    let mut cases = vec![
        case(None, Duration::ZERO..=look),
        case(Some(Duration::ZERO), Duration::ZERO..=grace),
        case(Some(millisecond), millisecond..=grace),
        case(Some(second), second..=second),
        case(Some(Duration::MAX), long..=long),
    ];
    let mut late = Vec::new();
    for _ in 0..TRIES {
        let took = join_all(cases.iter().map(|case| fails(locks, case))).await;
        let took = cases.drain(..).zip(took);
        let is_late = |(case, took): &(Case, Duration)| *took > *case.ends.end() + SLACK;
        for (case, took) in took.filter(is_late).collect::<Vec<_>>() {
            late.push(format!("{:?}: {took:?}", case.wait));
            cases.push(case);
        }
        if cases.is_empty() {
            return;
        }
    }
    panic!("late each time, by wait: {late:?}");
}

/// Acquires in vain. Returns how long this took.
async fn fails(locks: &LockManager, case: &Case) -> Duration {
    let asked = TokioRuntime.now();
    let acquire = locks.acquire(format!("waits:{:?}", case.wait));
    let acquired = match case.wait {
        None => acquire.try_acquire().await.map(drop),
        Some(wait) => acquire.wait(wait).await.map(drop),
    };
    let took = TokioRuntime.now().since(asked);
    let kind = acquired.map_err(|error| error.kind());
    assert_eq!(kind, Err(ErrorKind::Unavailable), "{:?}", case.wait);
    assert!(took >= *case.ends.start(), "{:?}: {took:?}", case.wait);
    took
}
