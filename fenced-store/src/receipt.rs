use lock_core::{FencingToken, ResourceName, Sequencer};

/// Proof that a fenced transaction was committed: the store checked the token and made the change.
///
/// Only [`FencedTx::commit`](crate::FencedTx::commit) makes one, after the database has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// At least one.
    entered: Vec<(ResourceName, FencingToken)>,
}

impl Receipt {
    /// Must only be called after a commit was answered, with the grants that it was fenced by.
    pub(crate) fn of_commit<'a>(grants: impl IntoIterator<Item = &'a Sequencer>) -> Self {
        let entered = |one: &Sequencer| (one.resource().clone(), one.token());
        let entered = grants.into_iter().map(entered).collect();
        Self { entered }
    }

    /// The accepted token; if there are several, that of the first resource that was named.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.entered[0].1
    }

    /// The entered resource; if there are several, the first that was named.
    #[must_use]
    pub fn resource(&self) -> &ResourceName {
        &self.entered[0].0
    }

    /// All resources that the transaction had entered, each with its accepted token, in the order
    /// in which they were named.
    pub fn entered(&self) -> impl Iterator<Item = (&ResourceName, FencingToken)> {
        self.entered
            .iter()
            .map(|(resource, token)| (resource, *token))
    }
}
