use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it, whatever has panicked before.
///
/// That is right for every mutex of this crate: none is held across an await, and what can panic
/// under one leaves what it guards whole.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
