use lock_core::{InvalidName, ResourceName};

/// The name of a job, with the resource that all of its slots share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobName(ResourceName);

const PREFIX: &str = "job:";

impl JobName {
    pub(crate) fn new(name: &str) -> Result<Self, InvalidName> {
        // This refuses an empty name.
        ResourceName::new(name)?;
        ResourceName::new(format!("{PREFIX}{name}")).map(Self)
    }

    /// The job whose resource this is.
    pub(crate) fn of(resource: &ResourceName) -> Option<Self> {
        let name = resource.as_str().strip_prefix(PREFIX)?;
        (!name.is_empty()).then(|| Self(resource.clone()))
    }

    pub(crate) const fn resource(&self) -> &ResourceName {
        &self.0
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0.as_str()[PREFIX.len()..]
    }
}
