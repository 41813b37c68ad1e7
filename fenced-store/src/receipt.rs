use lock_core::{FencingToken, ResourceName, Sequencer};

/// Proof that a fenced transaction was committed: the store checked the token and made the change.
///
/// Only [`FencedTx::commit`](crate::FencedTx::commit) makes one, after the database has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    resource: ResourceName,
    token: FencingToken,
}

impl Receipt {
    /// To be called after the commit was answered, and nowhere else.
    pub(crate) fn of_commit(sequencer: &Sequencer) -> Self {
        Self {
            resource: sequencer.resource().clone(),
            token: sequencer.token(),
        }
    }

    /// The token that was accepted.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// The resource that was changed.
    #[must_use]
    pub const fn resource(&self) -> &ResourceName {
        &self.resource
    }
}
