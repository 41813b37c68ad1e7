//! Tests of load: many locks, many waiters, many that give up, connections that break all the time;
//! and nothing left afterwards. `scripts/test` runs these when nothing else runs.

mod churn;
mod held;
mod storm;
mod waiters;

use tokio::sync::{Mutex, MutexGuard};

/// One load at a time: two would say more about the machine than about the locks.
async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}
