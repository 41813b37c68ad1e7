use std::sync::Arc;

use tokio::sync::watch;

use lock_core::backend::{Moment, Runtime};

/// The fate of one request to the lock service.
///
/// To the caller a lost request or reply looks like a real one: an error of kind
/// [`Unavailable`](lock_core::ErrorKind::Unavailable) whose outcome is
/// [`Unknown`](lock_core::Outcome::Unknown), because a client cannot know which of the two was
/// lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The request goes through. Use this in a script to skip calls.
    Pass,
    /// The request does not arrive.
    DropRequest,
    /// The request takes effect, but the reply is lost.
    DropReply,
    /// The request arrives only at this time. It is lost if the caller goes away before.
    DelayRequest(Until),
    /// The request takes effect at once, but the reply comes only at this time.
    DelayReply(Until),
    /// The request goes through, and a copy of it arrives with
    /// [`deliver_late`](super::Chaos::deliver_late).
    Duplicate,
    /// To the caller the request is lost. It arrives with
    /// [`deliver_late`](super::Chaos::deliver_late), whatever the caller does by then.
    Postpone,
}

/// The end of a delay.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Until {
    /// When the clock of the [`Chaos`](super::Chaos) shows this moment.
    Moment(Moment),
    /// When the gate is opened.
    Opened(Gate),
}

/// A gate that stops everything that reaches it, until the gate is opened. Clones are the same
/// gate.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    state: Arc<watch::Sender<State>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    arrived: bool,
    open: bool,
}

impl Gate {
    /// A gate that is closed.
    #[must_use]
    pub fn closed() -> Self {
        Self::default()
    }

    /// Lets through all callers that wait, and all that come later.
    pub fn open(&self) {
        self.state.send_modify(|state| state.open = true);
    }

    /// Completes when a caller has come to the gate.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn arrival(&self) {
        // It cannot fail: the sender is in `self`.
        drop(self.state.subscribe().wait_for(|state| state.arrived).await);
    }

    async fn pass(&self) {
        self.state.send_modify(|state| state.arrived = true);
        // It cannot fail: the sender is in `self`.
        drop(self.state.subscribe().wait_for(|state| state.open).await);
    }
}

impl Until {
    pub(super) async fn over(&self, runtime: &dyn Runtime) {
        match self {
            Self::Moment(moment) => runtime.sleep_until(*moment).await,
            Self::Opened(gate) => gate.pass().await,
        }
    }
}
