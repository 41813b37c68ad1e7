//! Watches that can be asked more than once.

use std::{
    fmt,
    future::{pending, poll_fn},
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll, Waker},
};

use lock_core::backend::support::lock;
use zookeeper_client::{EventType, OneshotWatcher};

/// A watch of a node, which fires once: for a change, or when the session is over.
///
/// If the watch is dropped before that, the client removes it, which costs the servers a request.
pub(super) struct Watch(Mutex<State>);

enum State {
    Set(Pin<Box<dyn Future<Output = EventType> + Send>>),
    Fired(EventType),
}

impl Watch {
    pub(super) fn new(watcher: OneshotWatcher) -> Self {
        let fired = async { watcher.changed().await.event_type };
        Self(Mutex::new(State::Set(Box::pin(fired))))
    }

    /// Waits until the watch fires. Returns at once if it has already fired.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is lost. Only one task may wait.
    pub(super) async fn fired(&self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    /// Whether the watch has fired. To be called while no task waits.
    pub(super) fn has_fired(&self) -> bool {
        self.event().is_some()
    }

    /// Whether the watch has fired because the node was deleted. To be called while no task waits.
    pub(super) fn is_gone(&self) -> bool {
        self.event() == Some(EventType::NodeDeleted)
    }

    fn event(&self) -> Option<EventType> {
        match self.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<EventType> {
        let mut state = lock(&self.0);
        let event = match &mut *state {
            State::Fired(event) => return Poll::Ready(*event),
            State::Set(fired) => std::task::ready!(fired.as_mut().poll(cx)),
        };
        *state = State::Fired(event);
        Poll::Ready(event)
    }
}

/// Waits until a watch fires, if there is one.
pub(super) async fn fired(watch: Option<&Watch>) {
    match watch {
        Some(watch) => watch.fired().await,
        None => pending().await,
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
