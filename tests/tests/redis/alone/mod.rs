//! Many locks, many waiters, many who change their mind; and nothing left afterwards.

mod churn;
mod held;
mod waiters;

use tokio::sync::{Mutex, MutexGuard};

/// One load at a time: two would tell of the machine more than of the locks.
async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}
