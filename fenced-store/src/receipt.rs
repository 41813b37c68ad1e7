use std::iter;

use lock_core::{FencingToken, ResourceName, Sequencer};

/// Proof that a fenced transaction was committed: the store checked the token and made the change.
///
/// Only [`FencedTx::commit`](crate::FencedTx::commit) makes one, after the database has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    resource: ResourceName,
    token: FencingToken,
    others: Vec<(ResourceName, FencingToken)>,
}

impl Receipt {
    /// Must only be called after a commit was answered.
    pub(crate) fn of_commit(sequencer: &Sequencer, others: &[Sequencer]) -> Self {
        let entered = |one: &Sequencer| (one.resource().clone(), one.token());
        Self {
            resource: sequencer.resource().clone(),
            token: sequencer.token(),
            others: others.iter().map(entered).collect(),
        }
    }

    /// The accepted token; if there are several, that of the first resource that was named.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// The entered resource; if there are several, the first that was named.
    #[must_use]
    pub const fn resource(&self) -> &ResourceName {
        &self.resource
    }

    /// All resources that the transaction had entered, each with its accepted token, in the order
    /// in which they were named.
    pub fn entered(&self) -> impl Iterator<Item = (&ResourceName, FencingToken)> {
        let others = self
            .others
            .iter()
            .map(|(resource, token)| (resource, *token));
        iter::once((&self.resource, self.token)).chain(others)
    }
}
