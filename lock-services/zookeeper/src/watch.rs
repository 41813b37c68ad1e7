//! Watches that may be asked more than once.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll, Waker},
};

use lock_core::backend::support::lock;
use zookeeper_client::OneshotWatcher;

type Telling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A watch of a node, which tells once: of a change, or that the session is over.
///
/// If it is dropped before that, it is taken back, which costs the servers a request.
pub(super) struct Watch(Mutex<Option<Telling>>);

impl Watch {
    pub(super) fn new(watcher: OneshotWatcher) -> Self {
        let telling = async {
            watcher.changed().await;
        };
        Self(Mutex::new(Some(Box::pin(telling))))
    }

    /// Waits until it tells. Returns at once if it has.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost. Only one task may wait.
    pub(super) async fn told(&self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    /// Whether it has told, for a watch that nobody waits for.
    pub(super) fn has_told(&self) -> bool {
        self.poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut telling = lock(&self.0);
        if let Some(waits) = telling.as_mut() {
            if waits.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            *telling = None;
        }
        Poll::Ready(())
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
