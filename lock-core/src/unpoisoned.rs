use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, even if a thread has panicked while it held it.
///
/// That is right for every mutex of this crate: none is held across an await, and code that can
/// panic while it holds one leaves the guarded value in a valid state.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
