//! Tests of load: many locks, many waiters, many waiters that give up, connections that break all
//! the time. Afterwards nothing must be left. `scripts/test` runs these tests when nothing else
//! runs.

mod churn;
mod held;
mod storm;
mod waiters;

use tokio::sync::{Mutex, MutexGuard};

/// Only one test of load runs at a time, because two would measure the machine and not the locks.
async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}
