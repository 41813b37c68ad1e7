use lock_core::{LockManager, Sequencer};
use tokio::sync::mpsc;

/// Takes leases back that were granted for a request whose client has gone away meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Returns(mpsc::UnboundedSender<Sequencer>);

/// A lease that no client has been told of yet. Dropped, it is given back.
#[derive(Debug)]
pub(super) struct Unanswered {
    returns: Returns,
    sequencer: Option<Sequencer>,
}

impl Returns {
    /// The way in, and the task behind it: it ends when every clone of the way in is gone.
    pub(super) fn new(locks: LockManager) -> (Self, impl Future<Output = ()> + Send) {
        // Unbounded, since a Drop cannot wait; there are no more than requests under way.
        let (returns, mut arriving) = mpsc::unbounded_channel::<Sequencer>();
        let give_back = async move {
            while let Some(lease) = arriving.recv().await {
                if let Err(error) = locks.release(&lease).await {
                    tracing::warn!(%error, "an unanswered lease ends by its ttl only");
                }
            }
        };
        (Self(returns), give_back)
    }

    /// Watches over a lease until its client has been told of it.
    pub(super) fn watch(&self, sequencer: Sequencer) -> Unanswered {
        Unanswered {
            returns: self.clone(),
            sequencer: Some(sequencer),
        }
    }
}

impl Unanswered {
    /// The client is about to get its answer: from now on the lease is its own to release.
    pub(super) fn answered(mut self) {
        self.sequencer = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(sequencer) = self.sequencer.take()
            && self.returns.0.send(sequencer).is_err()
        {
            tracing::debug!("shutting down: an unanswered lease ends by its ttl only");
        }
    }
}
