use crate::{FencingToken, Holder, Issuer, ResourceName};

/// Proof of a grant, which travels with every request made under the grant. The word comes from
/// Chubby.
///
/// The store compares all four parts with its mark. A client with a sequencer does not always hold
/// the lease: the lease may have ended long ago. The store finds that out. The holder in it is a
/// secret; `Debug` shows only its fingerprint.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let memory = lock_core::memory::MemoryBackend::default();
/// # let locks = lock_core::LockManager::builder().build(memory)?;
/// let guard = locks.acquire("account:42").await?;
/// let sequencer = guard.sequencer(); // `store.begin(sequencer)`, or a header of a request
/// assert_eq!(sequencer.resource().as_str(), "account:42");
/// assert_eq!(sequencer.token(), guard.token());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sequencer {
    issuer: Issuer,
    resource: ResourceName,
    token: FencingToken,
    holder: Holder,
}

impl Sequencer {
    /// Assembles a sequencer from its parts.
    #[must_use]
    pub const fn new(
        issuer: Issuer,
        resource: ResourceName,
        token: FencingToken,
        holder: Holder,
    ) -> Self {
        Self {
            issuer,
            resource,
            token,
            holder,
        }
    }

    /// The lock service that issued the token.
    #[must_use]
    pub const fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The resource that the token protects.
    #[must_use]
    pub const fn resource(&self) -> &ResourceName {
        &self.resource
    }

    /// The fencing token.
    #[must_use]
    pub const fn token(&self) -> FencingToken {
        self.token
    }

    /// The holder, a secret.
    #[must_use]
    pub const fn holder(&self) -> Holder {
        self.holder
    }
}
