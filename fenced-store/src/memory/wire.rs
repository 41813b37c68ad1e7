use std::fmt;

use lock_core::backend::BoxFuture;
use tokio::sync::oneshot;

use super::Memory;

/// The way from a client to a store in memory: a test delays and loses messages on it.
pub trait Wire: fmt::Debug + Send + Sync + 'static {
    /// Takes a message over. The store does its work when the future `message` is polled. A task of
    /// its own may poll the future, so that a message arrives although its sender is gone. A
    /// message that is dropped is lost. An answer that is dropped is lost, too. In both cases the
    /// client finds its connection broken.
    fn carry(&self, call: Call, message: BoxFuture<'static, Answer>);
}

/// The kind of a message from a client to a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Call {
    /// To raise a mark.
    Claim,
    /// To wait for the end of the transactions of a grant.
    Settle,
    /// To begin a fenced transaction.
    Begin,
    /// To commit a fenced transaction.
    Commit,
    /// To open a session that reads.
    Read,
}

/// An answer on its way to the client.
#[must_use = "an answer that is dropped is lost"]
pub struct Answer(Box<dyn FnOnce() + Send>);

impl Answer {
    /// Hands the answer to the client, if the client is still there.
    pub fn deliver(self) {
        (self.0)();
    }
}

impl Memory {
    /// Sends this work to the store. `None` if no answer came.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        call: Call,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let Some(wire) = &self.wire else {
            return Some(work.await);
        };
        let (answer, answered) = oneshot::channel();
        let message = async move {
            let output = work.await;
            Answer(Box::new(move || drop(answer.send(output))))
        };
        wire.carry(call, Box::pin(message));
        answered.await.ok()
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Answer").finish_non_exhaustive()
    }
}
