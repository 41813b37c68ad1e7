//! For tests of your own: a clock that stands still until you move it.
//!
//! Together with [`LockManager::freeze_watchdog`](crate::LockManager::freeze_watchdog) it plays a
//! paused process: freeze the watchdog, move the clock past the lease, let a rival acquire and
//! write, thaw, and see the first holder's write refused.

mod manual_clock;

pub use self::manual_clock::ManualClock;
