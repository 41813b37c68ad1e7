use lock_core::{FencingToken, ResourceName, Sequencer};

/// Proof that a fenced transaction was committed: the store checked the token and made the change.
///
/// Only [`FencedTx::commit`](crate::FencedTx::commit) makes one, after the database has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// At least one.
    resources: Vec<(ResourceName, FencingToken)>,
}

impl Receipt {
    /// Must only be called after a commit was answered, with the grants that it was fenced by.
    pub(crate) fn of_commit<'a>(grants: impl IntoIterator<Item = &'a Sequencer>) -> Self {
        let accepted = |one: &Sequencer| (one.resource().clone(), one.token());
        let resources = grants.into_iter().map(accepted).collect();
        Self { resources }
    }

    /// The accepted token; if there are several, the token of the first named resource.
    #[must_use]
    pub fn token(&self) -> FencingToken {
        self.resources[0].1
    }

    /// The resource that fenced the transaction; if there are several, the first named one.
    #[must_use]
    pub fn resource(&self) -> &ResourceName {
        &self.resources[0].0
    }

    /// All resources that fenced the transaction, each with its accepted token, in the order
    /// in which they were named.
    pub fn resources(&self) -> impl Iterator<Item = (&ResourceName, FencingToken)> {
        self.resources
            .iter()
            .map(|(resource, token)| (resource, *token))
    }
}
