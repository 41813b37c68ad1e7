//! Many locks, many waiters, many who change their mind; and nothing left afterwards.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "tasks end with the runtime of their test"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod churn;
mod held;
mod waiters;

use tokio::sync::{Mutex, MutexGuard};

/// One load at a time: two would tell of the machine more than of the locks.
async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}
