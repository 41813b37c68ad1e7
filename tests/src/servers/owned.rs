use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{blocking, start};
use crate::warden::{Order, Running, ServerKind, Warden};

/// A server of one test. Dropping it ends the server and returns when it is gone.
#[derive(Debug)]
pub(super) struct Owned(Arc<Mutex<Warden>>);

impl Owned {
    pub(super) async fn start(kind: ServerKind, arguments: Vec<String>) -> Self {
        Self(Arc::new(Mutex::new(start(kind, arguments).await)))
    }

    pub(super) fn running(&self) -> Running {
        lock(&self.0).running().clone()
    }

    /// # Panics
    /// If the order cannot be carried out.
    pub(super) async fn order(&self, order: Order) {
        let warden = Arc::clone(&self.0);
        let done = blocking(move || lock(&warden).order(order)).await;
        done.unwrap_or_else(|error| {
            panic!(
                "cannot {order:?} the server at {}: {error}",
                self.running().url
            )
        });
    }
}

fn lock(warden: &Mutex<Warden>) -> MutexGuard<'_, Warden> {
    warden.lock().unwrap_or_else(PoisonError::into_inner)
}
